# SPDX-License-Identifier: Apache-2.0
# The target `header_check` compiles every header alone, twice in one file, so each names all it needs and guards itself.
file(GLOB_RECURSE headers RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/model/*.h" "${PROJECT_SOURCE_DIR}/sim/*.h"
  "${PROJECT_SOURCE_DIR}/validate/*.h" "${PROJECT_SOURCE_DIR}/reports/*.h")
list(FILTER headers EXCLUDE REGEX "^validate/cuda/")

set(header_sources)
foreach(header IN LISTS headers)
  set(source "${PROJECT_BINARY_DIR}/header_check/${header}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  list(APPEND header_sources "${source}")
endforeach()

add_library(header_check OBJECT EXCLUDE_FROM_ALL ${header_sources})
target_link_libraries(header_check PRIVATE commfuse_model commfuse_sim commfuse_validate commfuse_reports)
if(COMMFUSE_HEADER_CHECK)
  set_property(TARGET header_check PROPERTY EXCLUDE_FROM_ALL OFF)
endif()
