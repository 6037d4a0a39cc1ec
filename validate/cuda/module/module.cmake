# SPDX-License-Identifier: Apache-2.0
# The plugin: lib/commfuse/libcommfuse_cuda.so. Linked neither with libcuda nor with NVML, so that it loads, and says
# what is missing, where there is no driver.
file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/*.cpp"
  "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/*.cu")
add_library(commfuse_cuda MODULE ${sources}
  # What it shares with the program, compiled anew: a module's code stands anywhere in memory.
  cuda/attention_graph.cpp cuda/attention_pieces.cpp cuda/nccl_features.cpp
  "${PROJECT_SOURCE_DIR}/model/check.cpp" "${PROJECT_SOURCE_DIR}/model/units.cpp"
  "${PROJECT_BINARY_DIR}/model/build_info.cpp")
add_dependencies(commfuse_cuda commfuse_build_info)
set_target_properties(commfuse_cuda PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/commfuse" CUDA_STANDARD 20 CUDA_RUNTIME_LIBRARY Static
  INSTALL_RPATH_USE_LINK_PATH ON)
target_compile_options(commfuse_cuda PRIVATE
  # Sums and products are rounded apart, as on the host. Without -Wpedantic, which finds fault with what nvcc makes.
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-Werror=all-warnings>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow,-Werror,-Wno-missing-field-initializers>")
target_link_libraries(commfuse_cuda PRIVATE
  commfuse_options fmt::fmt Threads::Threads CUDA::cudart_static CUDA::cublasLt)

if(TARGET CUDA::cupti)
  target_compile_definitions(commfuse_cuda PRIVATE COMMFUSE_WITH_CUPTI)
  target_link_libraries(commfuse_cuda PRIVATE CUDA::cupti)
else()
  message(STATUS "CUDA plugin: without traces, for there is no CUPTI")
endif()
if(COMMFUSE_FOUND_NCCL VERSION_GREATER_EQUAL 2.18)
  target_compile_definitions(commfuse_cuda PRIVATE COMMFUSE_WITH_NCCL)
  target_include_directories(commfuse_cuda SYSTEM PRIVATE "${COMMFUSE_NCCL_INCLUDE_DIR}")
  target_link_libraries(commfuse_cuda PRIVATE "${COMMFUSE_NCCL_LIBRARY}")
else()
  file(GLOB of_nccl "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/nccl_*.cpp")
  set_source_files_properties(${of_nccl} PROPERTIES HEADER_FILE_ONLY ON)
  message(STATUS "CUDA plugin: without NCCL, for there is none from 2.18 on")
endif()

if(COMMFUSE_FOUND_CUDNN VERSION_GREATER_EQUAL 9.8)
  target_compile_definitions(commfuse_cuda PRIVATE COMMFUSE_WITH_CUDNN)
  target_include_directories(commfuse_cuda SYSTEM PRIVATE "${COMMFUSE_CUDNN_INCLUDE_DIR}")
else()
  file(GLOB of_cudnn "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/cudnn_*.cpp")
  set_source_files_properties(${of_cudnn} PROPERTIES HEADER_FILE_ONLY ON)
  message(STATUS "CUDA plugin: without fused attention, for there are no headers of cuDNN from 9.8 on")
endif()

add_dependencies(commfuse-validate commfuse_cuda)
install(TARGETS commfuse_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_BINDIR}/../lib/commfuse" COMPONENT cuda)
