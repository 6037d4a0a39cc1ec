# SPDX-License-Identifier: Apache-2.0
# Programs for machines without our dependencies: the objects of this build are linked again with all libraries static
# except the C library and libgcc_s, so that they run on any Linux with glibc 2.34 or later (decision 0074). `./dev
# package` fetches the sources of the two libraries that Debian has only as shared objects, oneTBB and fmt, in the
# versions that this build includes; without these sources, or without an archive of another library, there is no
# target commfuse_portable.
set(COMMFUSE_PORTABLE_SOURCES "${PROJECT_BINARY_DIR}/portable/sources" CACHE PATH "Sources of oneTBB and fmt")
set(COMMFUSE_GLIBC_FLOOR 2.34 CACHE STRING "Oldest glibc for packed programs; 2.34 requires a build on Debian 12")
mark_as_advanced(COMMFUSE_GLIBC_FLOOR)
file(GLOB tbb "${COMMFUSE_PORTABLE_SOURCES}/onetbb-*/src/tbb")
file(GLOB fmt "${COMMFUSE_PORTABLE_SOURCES}/fmtlib-*/src")
if(NOT tbb OR NOT fmt)
  return()
endif()

# These are the options of the libraries' own static builds, which load nothing at run time.
file(GLOB sources "${tbb}/*.cpp")
add_library(commfuse_portable_tbb STATIC EXCLUDE_FROM_ALL ${sources})
target_include_directories(commfuse_portable_tbb PRIVATE "${tbb}/../../include")
target_compile_definitions(commfuse_portable_tbb PRIVATE
  __TBB_BUILD __TBB_DYNAMIC_LOAD_ENABLED=0 __TBB_SOURCE_DIRECTLY_INCLUDED=1)
target_compile_options(commfuse_portable_tbb PRIVATE -w)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(commfuse_portable_tbb PRIVATE -mrtm -mwaitpkg)  # used where the processor supports them
endif()
add_library(commfuse_portable_fmt STATIC EXCLUDE_FROM_ALL "${fmt}/format.cc" "${fmt}/os.cc")
target_include_directories(commfuse_portable_fmt PRIVATE "${fmt}/../include")
target_compile_options(commfuse_portable_fmt PRIVATE -w)
# Files of one library have identical names in anonymous namespaces and depend on the order of their headers.
set_target_properties(commfuse_portable_tbb commfuse_portable_fmt PROPERTIES UNITY_BUILD OFF)
add_library(commfuse_portable_glibc OBJECT EXCLUDE_FROM_ALL cmake/package/newer_glibc.cpp)
set_target_properties(commfuse_portable_tbb commfuse_portable_glibc PROPERTIES POSITION_INDEPENDENT_CODE ON)

set(archives commfuse_portable_tbb commfuse_portable_fmt commfuse_et_def commfuse_report_assets)
foreach(top model sim validate reports)
  get_property(rooms GLOBAL PROPERTY COMMFUSE_ROOMS_OF_${top})
  list(APPEND archives ${rooms})
endforeach()
set(contained)
foreach(target IN LISTS archives)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND contained "$<TARGET_FILE:${target}>")
  endif()
endforeach()
foreach(name yaml-cpp protobuf-lite pugixml sqlite3 md z)
  find_library(COMMFUSE_STATIC_${name} NAMES lib${name}.a)
  mark_as_advanced(COMMFUSE_STATIC_${name})
  if(NOT COMMFUSE_STATIC_${name})
    message(STATUS "no packed programs: lib${name}.a is missing")
    return()
  endif()
  list(APPEND contained "${COMMFUSE_STATIC_${name}}")
endforeach()

set(folder "${PROJECT_BINARY_DIR}/portable")
set(check bash "${PROJECT_SOURCE_DIR}/cmake/package/glibc_floor.sh" ${COMMFUSE_GLIBC_FLOOR})
# The unwinder is the machine's libgcc_s, which comes with glibc everywhere: two unwinders in one process abort when an
# exception leaves the MPI module.
separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} -static-libstdc++ -Wl,--as-needed")
set(newer_glibc "$<TARGET_OBJECTS:commfuse_portable_glibc>")

set(outputs)
foreach(name sim validate)
  set(program commfuse-${name})
  set(output "${folder}/bin/${program}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}/bin"
    COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -o "${output}" "$<TARGET_OBJECTS:${program}>" "${newer_glibc}"
      "-Wl,--start-group" "$<TARGET_FILE:commfuse_${name}_commands>" ${contained} "-Wl,--end-group" -ldl -lpthread -s
    COMMAND ${check} "${output}"
    DEPENDS ${program} commfuse_${name}_commands ${archives} commfuse_portable_glibc
    COMMAND_EXPAND_LISTS VERBATIM)
  list(APPEND outputs "${output}")
endforeach()
if(TARGET commfuse_mpi)
  set(output "${folder}/lib/commfuse/commfuse-mpi.so")
  # The module is loaded with global symbols, which Open MPI needs; the symbols of the static C++ library stay private.
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}/lib/commfuse"
    COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -shared -o "${output}" "$<TARGET_OBJECTS:commfuse_mpi>" "${newer_glibc}"
      "-Wl,--exclude-libs,ALL" "-Wl,-z,defs" "$<TARGET_PROPERTY:MPI::MPI_CXX,INTERFACE_LINK_LIBRARIES>" -s
    COMMAND ${check} --also libmpi.so "${output}"
    DEPENDS commfuse_mpi commfuse_portable_glibc COMMAND_EXPAND_LISTS VERBATIM)
  list(APPEND outputs "${output}")
endif()
add_custom_target(commfuse_portable DEPENDS ${outputs})
