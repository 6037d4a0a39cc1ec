# SPDX-License-Identifier: Apache-2.0
# Required packages. Debian and Ubuntu have all of them; `./dev setup` installs them.

# commfuse_require(<package> [components...]): finds the package, or fails with one sentence and the remedy.
function(commfuse_require package)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "commfuse needs ${package}, which was not found; run ./dev setup")
  endif()
endfunction()

# A short run spends a fifth to a third of its time on resolving symbols of shared libraries (docs/speed.md). Where
# Debian also has a library as an archive, a release build links the archive. The Python module is a shared library,
# into which Debian's archives cannot be linked, because they are not position-independent.
option(COMMFUSE_ARCHIVES "Link archives instead of shared libraries where both exist; not with COMMFUSE_PYTHON" OFF)
set(commfuse_links_archives OFF)
if(COMMFUSE_ARCHIVES AND NOT COMMFUSE_PYTHON)
  set(commfuse_links_archives ON)
endif()

commfuse_require(fmt)
commfuse_require(CLI11)
commfuse_require(yaml-cpp)
commfuse_require(Eigen3)
commfuse_require(nlohmann_json)
commfuse_require(TBB)
commfuse_require(GTest)
commfuse_require(ZLIB)
commfuse_require(Threads)
commfuse_require(Boost)  # For Boost.Graph, headers only.
commfuse_require(pugixml)  # For NCCL's topology files.
commfuse_require(SQLite3)  # For the stores of sweeps.
commfuse_require(Protobuf)  # For Chakra traces; the lite library and protoc.
find_package(benchmark QUIET)  # Only bench/ needs it.

# libmd (SHA-256) comes without a package file for CMake.
find_path(COMMFUSE_MD_INCLUDE_DIR sha2.h)
find_library(COMMFUSE_MD_LIBRARY md)
mark_as_advanced(COMMFUSE_MD_INCLUDE_DIR COMMFUSE_MD_LIBRARY)
if(NOT COMMFUSE_MD_INCLUDE_DIR OR NOT COMMFUSE_MD_LIBRARY)
  message(FATAL_ERROR "commfuse needs libmd, which was not found; run ./dev setup")
endif()
add_library(commfuse_md INTERFACE)
target_include_directories(commfuse_md SYSTEM INTERFACE "${COMMFUSE_MD_INCLUDE_DIR}")
# The archive has a cached variable of its own, so a build folder follows a changed COMMFUSE_ARCHIVES.
find_library(COMMFUSE_ARCHIVE_md NAMES libmd.a)
mark_as_advanced(COMMFUSE_ARCHIVE_md)
if(commfuse_links_archives AND COMMFUSE_ARCHIVE_md)
  target_link_libraries(commfuse_md INTERFACE "${COMMFUSE_ARCHIVE_md}")
else()
  target_link_libraries(commfuse_md INTERFACE "${COMMFUSE_MD_LIBRARY}")
endif()

# toml++ has only headers, so nothing is linked and no package depends on it.
find_path(COMMFUSE_TOML_INCLUDE_DIR toml++/toml.h)
mark_as_advanced(COMMFUSE_TOML_INCLUDE_DIR)
if(NOT COMMFUSE_TOML_INCLUDE_DIR)
  message(FATAL_ERROR "commfuse needs toml++, which was not found; run ./dev setup")
endif()

# yaml-cpp 0.7 exports `yaml-cpp`; 0.8 and later export `yaml-cpp::yaml-cpp`.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED)
  target_link_libraries(yaml-cpp::yaml-cpp INTERFACE yaml-cpp)
endif()
function(commfuse_link_archive target name)
  if(NOT TARGET ${target})
    return()
  endif()
  find_library(COMMFUSE_ARCHIVE_${name} NAMES lib${name}.a)
  mark_as_advanced(COMMFUSE_ARCHIVE_${name})
  if(COMMFUSE_ARCHIVE_${name})
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    foreach(configuration IN LISTS configurations)
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} "${COMMFUSE_ARCHIVE_${name}}")
    endforeach()
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${COMMFUSE_ARCHIVE_${name}}")
  endif()
endfunction()
if(commfuse_links_archives)
  commfuse_link_archive(SQLite::SQLite3 sqlite3)
  commfuse_link_archive(protobuf::libprotobuf-lite protobuf-lite)
  commfuse_link_archive(pugixml::shared pugixml)
  commfuse_link_archive(pugixml::pugixml pugixml)
  commfuse_link_archive(yaml-cpp yaml-cpp)
endif()
