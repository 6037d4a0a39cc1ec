# SPDX-License-Identifier: Apache-2.0
# A folder is a static library of all its .cpp files; its program is the main beside them and commands/*.cpp.

# commfuse_library(<folder>): the target commfuse_<folder>, from every .cpp below the calling folder but the program's
# and those of modules, which are loaded at run time.
function(commfuse_library folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/(commfuse_${folder}\\.cpp|commands/.*|.*/module/.*)$")
  if(sources)
    add_library(commfuse_${folder} STATIC ${sources})
    target_link_libraries(commfuse_${folder} PUBLIC commfuse_options)
  else()  # A folder with no source yet.
    add_library(commfuse_${folder} INTERFACE)
    target_link_libraries(commfuse_${folder} INTERFACE commfuse_options)
  endif()
endfunction()

# commfuse_link(<folder> [PUBLIC <targets>...] [PRIVATE <targets>...]): as target_link_libraries.
function(commfuse_link folder)
  cmake_parse_arguments(PARSE_ARGV 1 link "" "" "PUBLIC;PRIVATE")
  get_target_property(type commfuse_${folder} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_link_libraries(commfuse_${folder} INTERFACE ${link_PUBLIC})
  else()
    target_link_libraries(commfuse_${folder} PUBLIC ${link_PUBLIC} PRIVATE ${link_PRIVATE})
  endif()
endfunction()

# commfuse_program(<folder>): bin/commfuse-<folder>, when its main is there.
function(commfuse_program folder)
  if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/commfuse_${folder}.cpp")
    return()
  endif()
  file(GLOB commands CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/commands/*.cpp")
  # A library, so that tests can call a command as the program does.
  add_library(commfuse_${folder}_commands STATIC ${commands})
  target_link_libraries(commfuse_${folder}_commands PUBLIC
    commfuse_${folder} commfuse_model commfuse_reports CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json TBB::tbb)
  add_executable(commfuse-${folder} commfuse_${folder}.cpp)
  target_link_libraries(commfuse-${folder} PRIVATE commfuse_${folder}_commands)
  install(TARGETS commfuse-${folder} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
endfunction()
