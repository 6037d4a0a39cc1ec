# SPDX-License-Identifier: Apache-2.0
# Tests that a build folder follows a changed COMMFUSE_ARCHIVES: `cmake -D SOURCE_DIR=... -D FOLDER=... -D GENERATOR=...
# -D COMPILER=... -P archives_test.cmake`. Configures a project that has only the dependencies: without archives, with
# them, and without them again.
file(REMOVE_RECURSE "${FOLDER}")
file(WRITE "${FOLDER}/source/CMakeLists.txt"
  "cmake_minimum_required(VERSION 3.25)\n"
  "project(archives LANGUAGES CXX)\n"
  "include(\"${SOURCE_DIR}/cmake/dependencies.cmake\")\n"
  "get_target_property(library commfuse_md INTERFACE_LINK_LIBRARIES)\n"
  "message(STATUS \"library=\${library}; archive=\${COMMFUSE_ARCHIVE_md};\")\n")

function(configure archives library archive)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${FOLDER}/source" -B "${FOLDER}/build" -G "${GENERATOR}"
      -D "CMAKE_CXX_COMPILER=${COMPILER}" -D "COMMFUSE_ARCHIVES=${archives}"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0 OR NOT output MATCHES "library=([^;]*); archive=([^;]*);")
    message(FATAL_ERROR "COMMFUSE_ARCHIVES=${archives} does not configure:\n${output}")
  endif()
  set(${library} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set(${archive} "${CMAKE_MATCH_2}" PARENT_SCOPE)
endfunction()

configure(OFF before unused)
configure(ON with_archives archive)
configure(OFF after unused)
file(REMOVE_RECURSE "${FOLDER}")
if(NOT before STREQUAL after)
  message(FATAL_ERROR "without archives, libmd is '${before}', and again without archives '${after}'")
endif()
if(NOT archive MATCHES "NOTFOUND$" AND NOT with_archives MATCHES "\\.a$")
  message(FATAL_ERROR "with archives, libmd is '${with_archives}'")
endif()
message(STATUS "${before}, ${with_archives}, ${after}")
