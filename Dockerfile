# SPDX-License-Identifier: Apache-2.0
# commfuse without GPUs: docker build -t commfuse . && docker run --rm commfuse commfuse-sim run --seq 8K
FROM debian:12-slim AS build
WORKDIR /src
COPY . .
RUN ./dev setup && ./dev package

FROM debian:12-slim
COPY --from=build /src/build/packages/commfuse_*.deb /src/build/packages/commfuse-mpi_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/commfuse_*.deb /tmp/commfuse-mpi_*.deb \
  && rm -rf /tmp/*.deb /var/lib/apt/lists/*
RUN useradd --create-home commfuse
USER commfuse
WORKDIR /home/commfuse
CMD ["commfuse-sim", "--help"]
