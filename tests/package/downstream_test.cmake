# SPDX-License-Identifier: Apache-2.0
# cmake -D BINARY_DIR=... -D SOURCE_DIR=... -D COMPILER=... -D FLAGS=... -D GENERATOR=... -D RELEASE=<major.minor>
# -P downstream_test.cmake:
# installs the build into an empty folder, builds a project that asks for this release of the installation, and runs that
# project and the installed program. Fails with a message.
set(work "${BINARY_DIR}/package_test")
set(prefix "${work}/prefix")
file(REMOVE_RECURSE "${work}")

function(run expected)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT output MATCHES "${expected}")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nexited with ${status}, or printed no '${expected}':\n${output}")
  endif()
endfunction()

foreach(component runtime dev)
  run("" "${CMAKE_COMMAND}" --install "${BINARY_DIR}" --prefix "${prefix}" --component ${component})
endforeach()
run("its C\\+\\+ headers are experimental"
  "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE_DIR}/tests/package/downstream" -B "${work}/downstream"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
  "-DCOMMFUSE_RELEASE=${RELEASE}")
run("" "${CMAKE_COMMAND}" --build "${work}/downstream")
run("^80\n" "${CMAKE_COMMAND}" -E env "COMMFUSE_CONFIG_DIR=${prefix}/share/commfuse/configs" "${work}/downstream/downstream")
# The installed program finds its own configs.
run("commfuse" "${prefix}/bin/commfuse-sim" run --seq 8K)
# The installed page names the release as the project above asks for it.
file(READ "${prefix}/include/commfuse/README.md" text)
if(NOT text MATCHES "find_package\\(commfuse ${RELEASE}\\)")
  message(FATAL_ERROR "the installed README.md does not say find_package(commfuse ${RELEASE})")
endif()
foreach(page share/man/man1/commfuse-sim.1 share/bash-completion/completions/commfuse-sim share/fish/vendor_completions.d/commfuse-sim.fish)
  file(READ "${prefix}/${page}" text)
  if(NOT text MATCHES "schedule")
    message(FATAL_ERROR "${page} does not name the command schedule")
  endif()
endforeach()
file(REMOVE_RECURSE "${work}")
