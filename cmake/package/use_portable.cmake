# SPDX-License-Identifier: Apache-2.0
# CPack runs this after it has installed the files and before it packs them. Programs and modules in the folder
# CPACK_COMMFUSE_PORTABLE replace the files installed under the same path.
file(GLOB_RECURSE packed RELATIVE "${CPACK_COMMFUSE_PORTABLE}"
  "${CPACK_COMMFUSE_PORTABLE}/bin/*" "${CPACK_COMMFUSE_PORTABLE}/lib/*")
foreach(path IN LISTS packed)
  get_filename_component(name "${path}" NAME)
  file(GLOB_RECURSE installed "${CPACK_TEMPORARY_DIRECTORY}/*/${name}")
  foreach(file IN LISTS installed)
    if(file MATCHES "/${path}$")
      file(COPY_FILE "${CPACK_COMMFUSE_PORTABLE}/${path}" "${file}")
      message(STATUS "packed with its libraries: ${name}")
    endif()
  endforeach()
endforeach()
