# SPDX-License-Identifier: Apache-2.0
# Every build runs `cmake -D SOURCE_DIR=... -D OUTPUT=... -D (values of build_info.cpp.in) -P build_info.cmake`, which
# writes OUTPUT. An unchanged OUTPUT is left untouched; a new commit recompiles only OUTPUT.
find_program(git git)
set(git_revision "unknown")
if(git AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(
    COMMAND "${git}" --git-dir=.git describe --always --dirty --abbrev=12 --exclude=*
    WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(git_revision "${described}")
  endif()
endif()
configure_file("${SOURCE_DIR}/cmake/build_info.cpp.in" "${OUTPUT}" @ONLY)
