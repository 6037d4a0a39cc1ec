# SPDX-License-Identifier: Apache-2.0
# The plugin lib/commfuse/libcommfuse_cuda.so. The only NVIDIA library that it links is the static runtime: NCCL,
# CUPTI, cuBLASLt, cuDNN, libcuda and NVML are loaded at run time, so that the plugin loads without them and reports
# what is missing.
file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/*.cpp"
  "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/*.cu")
add_library(commfuse_cuda MODULE ${sources}
  # Sources that the plugin shares with the program, compiled again, because its code must be position-independent.
  cuda/attention_graph.cpp cuda/attention_pieces.cpp cuda/nccl_features.cpp
  "${PROJECT_SOURCE_DIR}/model/check.cpp" "${PROJECT_SOURCE_DIR}/model/units.cpp"
  "${PROJECT_BINARY_DIR}/model/build_info.cpp")
add_dependencies(commfuse_cuda commfuse_build_info)
set_target_properties(commfuse_cuda PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/commfuse" CUDA_STANDARD 20 CUDA_RUNTIME_LIBRARY Static
  LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/exports.map")
target_link_options(commfuse_cuda PRIVATE
  "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/exports.map" "LINKER:-z,defs")
target_include_directories(commfuse_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_options(commfuse_cuda PRIVATE
  # Sums and products are rounded separately, as on the host. -Wpedantic is omitted, because it reports code
  # that nvcc generates.
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow,-Wno-missing-field-initializers>")
if(COMMFUSE_WERROR)
  target_compile_options(commfuse_cuda PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>")
endif()
target_link_libraries(commfuse_cuda PRIVATE
  commfuse_options fmt::fmt Threads::Threads CUDA::cudart_static ${CMAKE_DL_LIBS})

find_path(COMMFUSE_CUPTI_INCLUDE_DIR cupti.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} "${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include"
    "${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include")
mark_as_advanced(COMMFUSE_CUPTI_INCLUDE_DIR)
if(COMMFUSE_CUPTI_INCLUDE_DIR)
  target_compile_definitions(commfuse_cuda PRIVATE COMMFUSE_WITH_CUPTI)
  target_include_directories(commfuse_cuda SYSTEM PRIVATE "${COMMFUSE_CUPTI_INCLUDE_DIR}")
else()
  message(STATUS "CUDA plugin: without traces, because no cupti.h was found")
endif()
if(COMMFUSE_FOUND_NCCL VERSION_GREATER_EQUAL 2.18)
  target_compile_definitions(commfuse_cuda PRIVATE COMMFUSE_WITH_NCCL)
  target_include_directories(commfuse_cuda SYSTEM PRIVATE "${COMMFUSE_NCCL_INCLUDE_DIR}")
else()
  file(GLOB nccl_sources "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/nccl_*.cpp")
  set_source_files_properties(${nccl_sources} PROPERTIES HEADER_FILE_ONLY ON)
  message(STATUS "CUDA plugin: without NCCL, because no nccl.h of 2.18 or later was found")
endif()

if(COMMFUSE_FOUND_CUDNN VERSION_GREATER_EQUAL 9.8)
  target_compile_definitions(commfuse_cuda PRIVATE COMMFUSE_WITH_CUDNN)
  target_include_directories(commfuse_cuda SYSTEM PRIVATE "${COMMFUSE_CUDNN_INCLUDE_DIR}")
else()
  file(GLOB cudnn_sources "${CMAKE_CURRENT_SOURCE_DIR}/cuda/module/cudnn_*.cpp")
  set_source_files_properties(${cudnn_sources} PROPERTIES HEADER_FILE_ONLY ON)
  message(STATUS "CUDA plugin: without fused attention, because no headers of cuDNN 9.8 or later were found")
endif()

add_dependencies(commfuse-validate commfuse_cuda)
install(TARGETS commfuse_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_BINDIR}/../lib/commfuse" COMPONENT cuda)
