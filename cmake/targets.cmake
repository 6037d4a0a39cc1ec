# SPDX-License-Identifier: Apache-2.0
# A room is a folder with its own library, static unless the folder has only headers; commfuse_<top folder> combines all
# rooms of a top folder. A program consists of the main file in a top folder and its commands/*.cpp.

# commfuse_room(<folder> [ROOMS <folders>...] [WITH <targets>...]): defines the room's target from the folder's own .cpp
# files, except a program's main. ROOMS are the rooms whose headers it includes, except rooms that another of these
# rooms includes already; they must be defined earlier, so that no two rooms include each other. WITH are libraries of
# other projects.
function(commfuse_room folder)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "ROOMS;WITH")
  commfuse_target_of(${folder} target)
  string(REGEX REPLACE "/.*" "" top ${folder})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/commfuse_${top}\\.cpp$")
  set(visibility PUBLIC)
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC commfuse_options fmt::fmt PRIVATE ${room_WITH})
  else()  # headers only
    add_library(${target} INTERFACE)
    set(visibility INTERFACE)
  endif()
  foreach(other IN LISTS room_ROOMS)
    commfuse_target_of(${other} needed)
    if(NOT TARGET ${needed})
      message(FATAL_ERROR "${folder} includes ${other}, which is not a room defined before it")
    endif()
    target_link_libraries(${target} ${visibility} ${needed})
  endforeach()
  if(NOT TARGET commfuse_${top})
    add_library(commfuse_${top} INTERFACE)
  endif()
  target_link_libraries(commfuse_${top} INTERFACE ${target})
  set_property(GLOBAL APPEND PROPERTY COMMFUSE_ROOMS_OF_${top} ${target})
endfunction()

# commfuse_target_of(<folder> <variable>): sets the variable to the name of the room's target: commfuse_model_cost for
# model/cost, commfuse_model_base for model.
function(commfuse_target_of folder variable)
  string(REPLACE "/" "_" name ${folder})
  if(NOT folder MATCHES "/")
    string(APPEND name "_base")
  endif()
  set(${variable} commfuse_${name} PARENT_SCOPE)
endfunction()

# commfuse_program(<folder>): defines bin/commfuse-<folder>, if its main exists.
function(commfuse_program folder)
  if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/commfuse_${folder}.cpp")
    return()
  endif()
  file(GLOB commands CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/commands/*.cpp")
  # The commands are a library, so that tests can call a command as the program does.
  add_library(commfuse_${folder}_commands STATIC ${commands})
  target_link_libraries(commfuse_${folder}_commands PUBLIC
    commfuse_${folder} commfuse_model commfuse_reports CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json TBB::tbb)
  add_executable(commfuse-${folder} commfuse_${folder}.cpp)
  target_link_libraries(commfuse-${folder} PRIVATE commfuse_${folder}_commands)
  install(TARGETS commfuse-${folder} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
endfunction()
