// SPDX-License-Identifier: Apache-2.0
// What joins the accelerators of one node, as one peer sees it and as a collective sees it.
#pragma once

#include <string>

#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// One exchange with one peer.
struct PeerParameters {
  Parameter<Duration> latency;     ///< From both ends posted to the first byte's arrival; no launch in it.
  Parameter<BytesPerSecond> rate;  ///< What a single peer gets, one direction, both directions busy.
  /// What all peers of a rank get together, one direction: as much as one where they share a port, as on a switch (what
  /// a file means that leaves it out); up to the sum where each has a wire of its own, as on a mesh. Sends and receives
  /// do not share it.
  Parameter<BytesPerSecond> aggregate_rate;
  Parameter<int> ctas;             ///< SMs the kernel holds while it runs; 0 for copy engines.
  Parameter<Duration> issue_cost;  ///< Host lane: issuing one grouped send and receive.
};

/// A ring collective in one launch; model/cost/communication.h says how each enters.
struct CollectiveParameters {
  Parameter<Duration> base_latency;         ///< Once a call; no host issue in it.
  Parameter<Duration> step_latency;         ///< Once a ring step.
  Parameter<BytesPerSecond> rate;           ///< Wire bytes a rank sends a second, for very large sizes.
  Parameter<BytesPerSecond> own_copy_rate;  ///< Bytes a second of a rank's own share, copied from input to output.
  Parameter<Bytes> ramp_size;               ///< Wire bytes at which the pipeline's ramp costs as much as the wire.
  Parameter<int> ctas;                      ///< SMs the kernel holds while it runs; 0 for copy engines.
  Parameter<Duration> issue_cost;           ///< Host lane: issuing one collective.
};

struct Link {
  std::string name;
  Parameter<BytesPerSecond> nominal_rate;  ///< The data sheet's, one direction; a cost only of bounds.
  PeerParameters peer;
  CollectiveParameters collective;
};

}  // namespace commfuse
