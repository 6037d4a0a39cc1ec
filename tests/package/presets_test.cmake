# SPDX-License-Identifier: Apache-2.0
# Tests that every preset configures: `cmake -D SOURCE_DIR=... -D FOLDER=... -D GENERATOR=... -D COMPILER=... -P
# presets_test.cmake`. The suite is built with one preset, so other tests would not notice a broken preset.
file(READ "${SOURCE_DIR}/CMakePresets.json" presets)
string(JSON count LENGTH "${presets}" configurePresets)
math(EXPR last "${count} - 1")
set(configured "")
foreach(index RANGE ${last})
  string(JSON name GET "${presets}" configurePresets ${index} name)
  string(JSON hidden ERROR_VARIABLE shown GET "${presets}" configurePresets ${index} hidden)
  if(hidden STREQUAL "ON")
    continue()
  endif()
  # A preset's compiler may be missing on this machine, so all presets are tried with the compiler of this build.
  file(REMOVE_RECURSE "${FOLDER}/${name}")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" --preset "${name}" -S "${SOURCE_DIR}" -B "${FOLDER}/${name}" -G "${GENERATOR}"
      -D "CMAKE_CXX_COMPILER=${COMPILER}"
    WORKING_DIRECTORY "${SOURCE_DIR}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  file(REMOVE_RECURSE "${FOLDER}/${name}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "preset '${name}' does not configure:\n${output}")
  endif()
  list(APPEND configured "${name}")
endforeach()
list(LENGTH configured count)
if(count LESS 5)
  message(FATAL_ERROR "only ${count} presets were found: ${configured}")
endif()
list(JOIN configured ", " configured)
message(STATUS "${configured}")
