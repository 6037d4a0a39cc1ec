# SPDX-License-Identifier: Apache-2.0
# Dependencies of the page's engine: libraries as sources, because Debian has none compiled to WebAssembly. Headers come
# from the machine, through links in a separate folder, so that the machine's C library stays invisible; sources come
# from COMMFUSE_PAGE_SOURCES, where `./dev page` puts the result of `apt-get source`.
set(COMMFUSE_PAGE_SOURCES "${PROJECT_BINARY_DIR}/sources" CACHE PATH "Sources of yaml-cpp, pugixml and libmd")

set(headers "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${headers}")
foreach(folder CLI fmt boost nlohmann Eigen unsupported)
  find_path(COMMFUSE_PAGE_${folder} "${folder}" PATHS /usr/include /usr/include/eigen3
    NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  file(CREATE_LINK "${COMMFUSE_PAGE_${folder}}/${folder}" "${headers}/${folder}" SYMBOLIC)
endforeach()
# Every file first includes the parts of C++20 that libc++ 14 lacks.
add_compile_options(-fwasm-exceptions)
add_link_options(-fwasm-exceptions)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${PROJECT_SOURCE_DIR}/page/shim/libcxx14.h>")

# commfuse_page_headers(<targets>...): defines header-only libraries.
function(commfuse_page_headers)
  foreach(target IN LISTS ARGN)
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} SYSTEM INTERFACE "${headers}")
  endforeach()
endfunction()
commfuse_page_headers(fmt::fmt Boost::headers CLI11::CLI11 nlohmann_json::nlohmann_json Eigen3::Eigen)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)

# commfuse_page_library(<name> <folder> <include> <sources>...): defines a library of another project from its sources.
function(commfuse_page_library name folder include)
  file(GLOB unpacked "${COMMFUSE_PAGE_SOURCES}/${folder}-*")
  if(NOT unpacked)
    message(FATAL_ERROR "no ${folder} in ${COMMFUSE_PAGE_SOURCES}; run ./dev page, which fetches it")
  endif()
  list(TRANSFORM ARGN PREPEND "${unpacked}/")
  file(GLOB sources ${ARGN})
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_include_directories(${name} SYSTEM PUBLIC "${unpacked}/${include}")
endfunction()
enable_language(C)
commfuse_page_library(commfuse_page_yaml yaml-cpp include "src/*.cpp")
add_library(yaml-cpp::yaml-cpp ALIAS commfuse_page_yaml)
commfuse_page_library(commfuse_page_pugixml pugixml src src/pugixml.cpp)
add_library(pugixml::pugixml ALIAS commfuse_page_pugixml)
commfuse_page_library(commfuse_md libmd include src/sha2.c)
file(WRITE "${headers}/libmd/config.h" "")  # SHA-2 needs nothing from autoconf's header
target_include_directories(commfuse_md PRIVATE "${headers}/libmd")
