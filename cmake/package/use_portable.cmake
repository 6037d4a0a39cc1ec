# SPDX-License-Identifier: Apache-2.0
# Run by CPack between the installation into its folder and the packing: programs and modules of the folder
# CPACK_COMMFUSE_PORTABLE, where it has them, replace what was installed under the same path.
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
