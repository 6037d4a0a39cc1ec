# SPDX-License-Identifier: Apache-2.0
# `cmake -D SOURCE=reports/assets -D WORK=... -D NPM=... -D NODE=... -P report_assets.cmake` leaves WORK/charts.js.gz, the
# charts with their library, and WORK/charts.txt, why there are none where that file is empty. A failure is no failure of
# the build: reports then hold static figures. npm is asked once a lockfile; WORK/node_modules serves from then on.
file(WRITE "${WORK}/charts.js.gz" "")
if(NOT NPM OR NOT NODE)
  file(WRITE "${WORK}/charts.txt" "${WHY}")
  return()
endif()
file(COPY "${SOURCE}/package.json" "${SOURCE}/package-lock.json" "${SOURCE}/build.mjs" "${SOURCE}/charts"
  DESTINATION "${WORK}" NO_SOURCE_PERMISSIONS)

function(commfuse_no_charts why output)
  file(WRITE "${WORK}/charts.txt" "${why}")
  message(STATUS "reports get static figures only: ${why}\n${output}")
  message(STATUS "to try again, remove ${WORK}/charts.js.gz and build")
endfunction()

file(SHA256 "${SOURCE}/package-lock.json" locked)
set(stamp "${WORK}/node_modules/.of-${locked}")
if(NOT EXISTS "${stamp}")
  execute_process(
    COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1 --fetch-timeout=30000
    WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output TIMEOUT 180)
  if(NOT status EQUAL 0)
    commfuse_no_charts("npm could not get the chart library when this program was built" "${output}")
    return()
  endif()
  file(TOUCH "${stamp}")
endif()
execute_process(COMMAND "${NODE}" build.mjs charts.js.gz
  WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the charts do not build:\n${output}")  # Our sources are wrong: nothing that is missing.
endif()
file(WRITE "${WORK}/charts.txt" "")
