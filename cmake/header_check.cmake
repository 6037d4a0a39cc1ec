# SPDX-License-Identifier: Apache-2.0
# The target `header_check` proves that every header of model, sim, validate (except validate/cuda) and reports includes
# everything that it needs and can be included twice. A header with `#pragma once` that its own source includes first is
# checked by that source; every other header is compiled alone, twice in one file.
file(GLOB_RECURSE headers RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/model/*.h" "${PROJECT_SOURCE_DIR}/sim/*.h"
  "${PROJECT_SOURCE_DIR}/validate/*.h" "${PROJECT_SOURCE_DIR}/reports/*.h")
list(FILTER headers EXCLUDE REGEX "^validate/cuda/")

# commfuse_shown_by_its_source(<result> <header>): sets the result to whether the header's own source checks it. Reads
# the files when CMake configures, as every build by ./dev does.
function(commfuse_shown_by_its_source result header)
  set(${result} FALSE PARENT_SCOPE)
  string(REGEX REPLACE "\\.h$" ".cpp" source "${PROJECT_SOURCE_DIR}/${header}")
  if(EXISTS "${source}")
    file(STRINGS "${source}" first LIMIT_COUNT 1 REGEX "^#")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" guard LIMIT_COUNT 1 REGEX "^#")
    if(first STREQUAL "#include \"${header}\"" AND guard STREQUAL "#pragma once")
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(header_sources)
foreach(header IN LISTS headers)
  set(source "${PROJECT_BINARY_DIR}/header_check/${header}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  commfuse_shown_by_its_source(shown "${header}")
  if(NOT shown)
    list(APPEND header_sources "${source}")
  endif()
endforeach()

add_library(header_check OBJECT EXCLUDE_FROM_ALL ${header_sources})
target_link_libraries(header_check PRIVATE commfuse_model commfuse_sim commfuse_validate commfuse_reports)
if(COMMFUSE_HEADER_CHECK)
  set_property(TARGET header_check PROPERTY EXCLUDE_FROM_ALL OFF)
endif()
