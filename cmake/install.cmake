# SPDX-License-Identifier: Apache-2.0
# Components of `cmake --install`, and the packages that CPack makes from them: the programs, their MPI module, the
# Python module, and the libraries for projects that use find_package(commfuse).
include(CMakePackageConfigHelpers)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # installing does not require the tests

# The programs find their configs relative to their own folder: ../share/commfuse/configs.
install(DIRECTORY configs/ DESTINATION "${CMAKE_INSTALL_DATADIR}/commfuse/configs" COMPONENT runtime OPTIONAL)
install(FILES README.md CHANGELOG.md SECURITY.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" COMPONENT runtime)

# commfuse_page(<program> <form> <file> <folder>): installs a page that the program generates from its option tree.
function(commfuse_page program form file folder)
  set(output "${PROJECT_BINARY_DIR}/pages/${form}/${file}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/pages/${form}"
    COMMAND "$<TARGET_FILE:${program}>" pages ${form} > "${output}"
    DEPENDS ${program} VERBATIM)
  set_property(TARGET commfuse_pages APPEND PROPERTY COMMFUSE_PAGES "${output}")
  install(FILES "${output}" DESTINATION "${folder}" COMPONENT runtime)
endfunction()

set(pages)
add_custom_target(commfuse_pages ALL)
foreach(program commfuse-sim commfuse-validate)
  commfuse_page(${program} man ${program}.1 "${CMAKE_INSTALL_MANDIR}/man1")
  commfuse_page(${program} bash ${program} "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  commfuse_page(${program} zsh _${program} "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  commfuse_page(${program} fish ${program}.fish "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endforeach()
get_target_property(pages commfuse_pages COMMFUSE_PAGES)
add_custom_target(commfuse_page_files DEPENDS ${pages})
add_dependencies(commfuse_pages commfuse_page_files)

# Libraries and headers.
set(libraries commfuse_options commfuse_md commfuse_et_def commfuse_report_assets)
foreach(top model sim reports)
  get_property(rooms GLOBAL PROPERTY COMMFUSE_ROOMS_OF_${top})
  list(APPEND libraries commfuse_${top} ${rooms})
endforeach()
foreach(library IN LISTS libraries)
  string(REPLACE "commfuse_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
install(TARGETS ${libraries} EXPORT commfuse ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
install(DIRECTORY model sim reports DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/commfuse" COMPONENT dev
  FILES_MATCHING PATTERN "*.h" PATTERN module EXCLUDE PATTERN commands EXCLUDE)
configure_file(cmake/package/headers.md.in "${PROJECT_BINARY_DIR}/headers.md" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/headers.md" RENAME README.md
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/commfuse" COMPONENT dev)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/commfuse")
install(EXPORT commfuse NAMESPACE commfuse:: FILE commfuse-targets.cmake DESTINATION "${package}" COMPONENT dev)
configure_package_config_file(cmake/commfuse-config.cmake.in "${PROJECT_BINARY_DIR}/commfuse-config.cmake"
  INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/commfuse-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/commfuse-config.cmake" "${PROJECT_BINARY_DIR}/commfuse-config-version.cmake"
  DESTINATION "${package}" COMPONENT dev)

set(CPACK_PACKAGE_NAME commfuse)
set(CPACK_PACKAGE_VENDOR "the commfuse authors")
set(CPACK_PACKAGE_CONTACT "the commfuse authors <commfuse@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
  "predicts how fast tensor-parallel LLM layers run when communication hides under computation")
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL runtime dev)
if(TARGET commfuse_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
if(TARGET commfuse_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # dependencies of the programs, as installed on this machine
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME commfuse)
set(CPACK_DEBIAN_MPI_PACKAGE_NAME commfuse-mpi)
# The dependency is written by hand, because one package serves several distributions, in which the package of
# libmpi.so.40 has two names.
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS
  "commfuse (= ${PROJECT_VERSION}), libopenmpi3 | libopenmpi40, libc6 (>= ${COMMFUSE_GLIBC_FLOOR}), libgcc-s1, \
openmpi-bin")
# Packed programs, if built, replace the programs that need this machine's libraries.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/package/use_portable.cmake")
set(CPACK_COMMFUSE_PORTABLE "${PROJECT_BINARY_DIR}/portable")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-commfuse)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
  "commfuse (= ${PROJECT_VERSION}), ${COMMFUSE_PYTHON_VERSIONS}, python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-pandas")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libcommfuse-dev)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Libraries and headers of commfuse, which are experimental: any minor version may \
change them.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libfmt-dev, libyaml-cpp-dev, libeigen3-dev, nlohmann-json3-dev, libtbb-dev, \
libboost-graph-dev, libmd-dev, zlib1g-dev, libprotobuf-dev, libpugixml-dev, libsqlite3-dev")
include(CPack)
