# SPDX-License-Identifier: Apache-2.0
# `cmake -D SOURCE=reports/assets -D WORK=... -D NPM=... -D NODE=... -D MUST=ON|OFF -P report_assets.cmake` writes
# WORK/charts.js.gz, the charts with their library, and WORK/charts.txt. If there are no charts, charts.js.gz is empty
# and charts.txt states the reason. If npm fails, the build fails only with MUST; otherwise reports have static figures,
# and the next build tries again because WORK/charts.got is missing. npm runs once per lockfile; later builds use
# WORK/node_modules.

# Writes a file, but leaves an unchanged file untouched, so that nothing is rebuilt.
function(commfuse_put file text)
  set(before "")
  if(EXISTS "${WORK}/${file}")
    file(READ "${WORK}/${file}" before HEX)
    string(HEX "${text}" after)
  else()
    set(after "none")
  endif()
  if(NOT before STREQUAL after)
    file(WRITE "${WORK}/${file}" "${text}")
  endif()
endfunction()

function(commfuse_no_charts why)
  commfuse_put(charts.js.gz "")
  commfuse_put(charts.txt "${why}")
endfunction()

file(REMOVE "${WORK}/charts.got")
if(NOT NPM OR NOT NODE)
  commfuse_no_charts("${WHY}")
  file(TOUCH "${WORK}/charts.got")
  return()
endif()
file(COPY "${SOURCE}/package.json" "${SOURCE}/package-lock.json" "${SOURCE}/build.mjs" "${SOURCE}/charts"
  DESTINATION "${WORK}" NO_SOURCE_PERMISSIONS)

file(SHA256 "${SOURCE}/package-lock.json" locked)
set(stamp "${WORK}/node_modules/.of-${locked}")
if(NOT EXISTS "${stamp}")
  execute_process(
    COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --prefer-offline
      --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=30000
    WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output TIMEOUT 180)
  if(NOT status EQUAL 0)
    if(MUST)
      message(FATAL_ERROR "COMMFUSE_CHARTS is ON but npm could not get the chart library; let npm reach its registry, or "
        "write -DCOMMFUSE_CHARTS=AUTO\n${output}")
    endif()
    commfuse_no_charts("npm could not get the chart library when this program was built")
    message(STATUS "reports get static figures only: npm could not get the chart library; the next build "
      "tries again, and -DCOMMFUSE_CHARTS=OFF avoids this\n${output}")
    return()
  endif()
  file(TOUCH "${stamp}")
endif()
execute_process(COMMAND "${NODE}" build.mjs charts.js.gz
  WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the charts do not build:\n${output}")  # Our sources are wrong; nothing is missing.
endif()
commfuse_put(charts.txt "")
file(TOUCH "${WORK}/charts.got")
