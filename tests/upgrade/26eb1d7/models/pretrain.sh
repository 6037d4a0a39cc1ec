#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
torchrun --nproc-per-node 8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
  --ffn-hidden-size 14336 --swiglu --max-position-embeddings 8192 --seq-length 8192 --position-embedding-type rope \
  --vocab-size 128256 --untie-embeddings-and-output-weights --normalization RMSNorm --disable-bias-linear \
  --tensor-model-parallel-size 4 --sequence-parallel --micro-batch-size 1 --global-batch-size 64 --bf16
