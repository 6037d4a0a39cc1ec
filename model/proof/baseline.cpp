// SPDX-License-Identifier: Apache-2.0
#include "model/proof/baseline.h"

#include <algorithm>

namespace commfuse {

Baseline::Baseline(const Program& program, const CellMap& cells, std::vector<Event> events, Sums& sums)
    : program_(program), cells_(cells), events_(std::move(events)), sums_(sums) {
  Findings findings;
  check_contents(program, cells, events_, sums, findings, &trace_);
  begin_.push_back(0);
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    for (const Op& op : program.ops) {
      add_places(rank, op);
    }
  }
  add_contents();
  add_first_events();
}

void Baseline::add_places(Rank rank, const Op& op) {
  const bool takes_part = op.where.holds(program_.mesh.coordinates(rank));
  if (takes_part) {
    for (const Slice operand : program_.inputs_of(op)) {
      add_operand(rank, operand);
    }
    if (op.kind == OpKind::gemm && std::get<GemmShape>(program_.shapes[op.shape]).accumulate) {
      add_operand(rank, program_.outputs_of(op).front());
    }
  }
  begin_.push_back(places_.size());
  if (takes_part) {
    for (const Slice operand : program_.outputs_of(op)) {
      add_operand(rank, operand);
    }
  }
  begin_.push_back(places_.size());
}

void Baseline::add_operand(Rank rank, Slice operand) {
  const std::size_t base = static_cast<std::size_t>(rank) * static_cast<std::size_t>(cells_.count());
  for (const Region& region : program_.regions_of(operand)) {
    cells_.for_each(region, program_.mesh.coordinates(rank),
                    [&](Cell cell) { places_.push_back(base + static_cast<std::size_t>(cell)); });
  }
}

void Baseline::add_contents() {
  const auto count = static_cast<std::size_t>(cells_.count());
  memory_.resize(count * static_cast<std::size_t>(program_.mesh.ranks()));
  for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
    const Coordinates coordinates = program_.mesh.coordinates(rank);
    const std::size_t base = static_cast<std::size_t>(rank) * count;
    for (const Content& content : program_.initial) {
      const std::int32_t column = content.column.at(program_.mesh, coordinates);
      const Tensor& tensor = program_.tensors[position(content.tensor)];
      CellValue value{content.tensor, content.row.at(program_.mesh, coordinates), column,
                      sums_.range(0, contributions(program_, tensor))};
      cells_.for_each(content.here, coordinates, [&](Cell cell) {
        initial_.emplace_back(base + static_cast<std::size_t>(cell), value);
        memory_[initial_.back().first] = value;
        if (++value.column == column + content.here.columns) {
          value.column = column;
          ++value.row;
        }
      });
    }
    for (const Content& content : program_.final) {
      cells_.for_each(content.here, coordinates,
                      [&](Cell cell) { final_.push_back(base + static_cast<std::size_t>(cell)); });
    }
  }
}

void Baseline::add_first_events() {
  first_event_.assign(program_.ops.size(), events_.size());
  for (std::size_t i = events_.size(); i-- > 0;) {
    const Event& event = events_[i];
    first_event_[position(event.op)] = i;
    if (event.kind == Event::Kind::sent || event.kind == Event::Kind::credited) {
      first_event_[position(event.target_op)] = i;
    }
  }
}

const std::vector<CellValue>& Baseline::memory_before(std::size_t event) {
  if (event < at_) {
    at_ = 0;
    std::fill(memory_.begin(), memory_.end(), nothing);
    for (const auto& [place, value] : initial_) {
      memory_[place] = value;
    }
  }
  for (; at_ < event; ++at_) {
    const Event& passed = events_[at_];
    if (passed.kind == Event::Kind::computed) {
      put(passed.rank, passed.op);
    } else if (passed.kind == Event::Kind::sent) {
      put(passed.target, passed.target_op);
    } else if (passed.kind == Event::Kind::collected) {
      const auto& shape = std::get<CollectiveShape>(program_.shapes[program_.ops[position(passed.op)].shape]);
      const std::int32_t extent = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
      for (std::int32_t i = 0; i < extent; ++i) {
        put(program_.mesh.member(passed.rank, shape.axis, i), passed.op);
      }
    }
  }
  return memory_;
}

void Baseline::put(Rank rank, OpId op) {
  const CellValues& values = trace_.at(0, rank, op).output;
  const std::span<const Place> places = written_by(rank, op);
  for (std::size_t i = 0; i < places.size(); ++i) {
    memory_[places[i]] = values[i];
  }
}

}  // namespace commfuse
