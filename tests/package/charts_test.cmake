# SPDX-License-Identifier: Apache-2.0
# Tests how the build reacts if npm fails, works or is missing:
# `cmake -D SOURCE_DIR=... -D FOLDER=... -P charts_test.cmake`. npm and node are small scripts here, so no network is
# needed.
set(work "${FOLDER}/work")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${work}")

function(commfuse_script name text)
  file(WRITE "${FOLDER}/${name}" "#!/bin/sh\n${text}\n")
  file(CHMOD "${FOLDER}/${name}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()
commfuse_script(npm-without-network "echo 'npm ERR! network' >&2; exit 1")
commfuse_script(npm "mkdir -p node_modules && echo called >>../npm.log")
commfuse_script(node "echo bundled >charts.js.gz")

# commfuse_build(<npm> <must> <code>): runs the build step, which must exit with <code>, and sets `printed` to its
# output. <must> is ON if charts are required.
function(commfuse_build npm must code)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "SOURCE=${SOURCE_DIR}/reports/assets" -D "WORK=${work}" -D "NPM=${npm}"
      -D "NODE=${FOLDER}/node" -D "WHY=there is no npm" -D "MUST=${must}" -P "${SOURCE_DIR}/cmake/report_assets.cmake"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL code)
    message(FATAL_ERROR "the build step exited with ${status}, not ${code}:\n${output}")
  endif()
  set(printed "${output}" PARENT_SCOPE)
endfunction()

function(commfuse_expect file text)
  file(READ "${FOLDER}/${file}" content)
  if(NOT content STREQUAL text)
    message(FATAL_ERROR "${file} contains '${content}', not '${text}'")
  endif()
endfunction()

function(commfuse_expect_printed words)
  if(NOT printed MATCHES "${words}")
    message(FATAL_ERROR "the output lacks '${words}':\n${printed}")
  endif()
endfunction()

# Without a network, figures are static, and the next build tries again.
commfuse_build("${FOLDER}/npm-without-network" OFF 0)
commfuse_expect_printed("static figures only.*the next build tries again.*npm ERR! network")
commfuse_expect(work/charts.js.gz "")
commfuse_expect(work/charts.txt "npm could not get the chart library when this program was built")
if(EXISTS "${work}/charts.got")
  message(FATAL_ERROR "a failed download counts as complete")
endif()
file(TIMESTAMP "${work}/charts.js.gz" before "%s%f")
commfuse_build("${FOLDER}/npm-without-network" OFF 0)
file(TIMESTAMP "${work}/charts.js.gz" after "%s%f")
if(NOT before STREQUAL after)
  message(FATAL_ERROR "a failed download changes the output, so everything would be rebuilt")
endif()

# If charts are required, a failed download is an error whose message states the remedy.
commfuse_build("${FOLDER}/npm-without-network" ON 1)
commfuse_expect_printed("COMMFUSE_CHARTS is ON.*-DCOMMFUSE_CHARTS=AUTO.*npm ERR! network")

# When the network is back, npm runs again, once.
commfuse_build("${FOLDER}/npm" ON 0)
commfuse_expect(work/charts.js.gz "bundled\n")
commfuse_expect(work/charts.txt "")
commfuse_build("${FOLDER}/npm" OFF 0)
commfuse_expect(npm.log "called\n")
if(NOT EXISTS "${work}/charts.got")
  message(FATAL_ERROR "a complete download does not count as complete")
endif()

# A later build without npm removes the charts and states the reason.
commfuse_build("" OFF 0)
commfuse_expect(work/charts.js.gz "")
commfuse_expect(work/charts.txt "there is no npm")
