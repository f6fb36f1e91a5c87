#include "collective/check_structure.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "collective/layout.h"

namespace ringbolt::collective {
namespace {

class StructureCheck {
 public:
  StructureCheck(const Schedule& schedule, const Problem& problem, const fabric::Graph& graph, const Limits& limits)
      : schedule_(schedule), problem_(problem), neighbours_(fabric::neighbours(graph)), limits_(limits) {}

  tl::expected<Transfers, std::string> run() {
    if (schedule_.programs.size() != problem_.n_ranks || neighbours_.size() != problem_.n_ranks) {
      return tl::unexpected(fmt::format("{} programs for {} ranks on a graph of {} nodes", schedule_.programs.size(),
                                        problem_.n_ranks, neighbours_.size()));
    }
    for (uint32_t rank = 0; rank < problem_.n_ranks && objection_.empty(); ++rank) {
      const Program& program = schedule_.programs[rank];
      for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
        sizes_[static_cast<size_t>(buffer)] = buffer_bytes(schedule_, problem_, rank, buffer);
      }
      for (uint32_t step = 0; step < program.steps.size() && objection_.empty(); ++step) {
        check_step(rank, step);
      }
    }
    if (objection_.empty()) {
      join_ends();
      check_transfers();
    }
    return objection_.empty() ? tl::expected<Transfers, std::string>(std::move(transfers_))
                              : tl::unexpected(objection_);
  }

 private:
  void object(uint32_t rank, uint32_t step, const std::string& what) {
    if (objection_.empty()) {
      objection_ = fmt::format("{}: {}", step_text(rank, step), what);
    }
  }

  void check_step(uint32_t rank, uint32_t index) {
    const Step& step = schedule_.programs[rank].steps[index];
    const uint32_t element = problem_.element_bytes;
    if (step.chunk_bytes == 0 || step.chunk_bytes % element != 0 || step.chunk_bytes > limits_.most_chunk_bytes) {
      object(rank, index,
             fmt::format("chunks of {} bytes are not whole elements of {} up to {}", step.chunk_bytes, element,
                         limits_.most_chunk_bytes));
    }
    if (step.bytes % element != 0) {
      object(rank, index, fmt::format("{} bytes are not whole elements of {}", step.bytes, element));
    }
    if (step.sources.empty() || step.targets.empty()) {
      object(rank, index, "it has no source or no target");
    }
    if (step.sources.size() > 1 && step.bytes > 0 && !reduces(problem_.operation)) {
      object(rank, index, fmt::format("it adds up in a {}", operation_text(problem_.operation)));
    }
    if (step.finishes && !reduces(problem_.operation)) {
      object(rank, index, fmt::format("it finishes in a {}", operation_text(problem_.operation)));
    }
    for (const Source& source : step.sources) {
      check_source(rank, index, source);
    }
    for (const Target& target : step.targets) {
      check_target(rank, index, target);
    }
    if (std::ranges::count(step.targets, Target::Kind::local, &Target::kind) > 1) {
      object(rank, index, "it has several local targets");
    }
  }

  void check_range(uint32_t rank, uint32_t index, Buffer buffer, uint64_t offset) {
    const uint64_t size = sizes_[static_cast<size_t>(buffer)];
    const uint64_t bytes = schedule_.programs[rank].steps[index].bytes;
    // By what is left: a sum could wrap.
    if (offset > size || bytes > size - offset || offset % problem_.element_bytes != 0) {
      object(rank, index,
             fmt::format("{} bytes at {} offset {} do not fit: it has {} bytes in elements of {}", bytes,
                         buffer_text(buffer), offset, size, problem_.element_bytes));
    }
  }

  void check_source(uint32_t rank, uint32_t index, const Source& source) {
    if (source.kind == Source::Kind::transfer) {
      add_end(rank, index, {source.peer, rank, source.transfer}, false);
      return;
    }
    check_range(rank, index, source.buffer, source.offset);
    if (source.after != kNoStep && source.after >= index) {
      object(rank, index, fmt::format("it waits for step {}, which is not before it", source.after));
    }
  }

  void check_target(uint32_t rank, uint32_t index, const Target& target) {
    if (target.kind == Target::Kind::local) {
      check_range(rank, index, target.buffer, target.offset);
      if (target.buffer == Buffer::input) {
        object(rank, index, "it writes to the input");
      }
      return;
    }
    const TransferKey transfer{rank, target.peer, target.transfer};
    add_end(rank, index, transfer, true);
    uint32_t node = rank;
    for (size_t hop = 0; hop <= target.via.size() && objection_.empty(); ++hop) {
      const uint32_t next = hop < target.via.size() ? target.via[hop] : target.peer;
      if (!std::ranges::binary_search(neighbours_[node], next)) {
        object(rank, index,
               fmt::format("{} goes from {} to {}, which no cable joins", transfer_text(transfer), node, next));
        return;
      }
      node = next;
    }
  }

  void add_end(uint32_t rank, uint32_t index, const TransferKey& transfer, bool sends) {
    const uint32_t peer = transfer.from == rank ? transfer.to : transfer.from;
    if (peer >= problem_.n_ranks || peer == rank) {
      object(rank, index, fmt::format("{} leads nowhere", transfer_text(transfer)));
      return;
    }
    ends_.push_back({transfer, sends, index, static_cast<uint32_t>(ends_.size())});
  }

  /// Puts the two ends of each transfer together.
  void join_ends() {
    transfers_.of_ends.resize(ends_.size());
    std::ranges::sort(ends_, {}, [](const End& end) { return std::tuple(end.transfer, end.sends, end.index); });
    for (const End& end : ends_) {
      if (transfers_.transfers.empty() || transfers_.transfers.back().key != end.transfer) {
        transfers_.transfers.push_back({end.transfer});
      }
      Transfer& transfer = transfers_.transfers.back();
      uint32_t& place = end.sends ? transfer.sender : transfer.receiver;
      if (place != kNoStep) {
        object(end.sends ? end.transfer.from : end.transfer.to, end.step,
               fmt::format("{} is {} twice, by step {}, too", transfer_text(end.transfer),
                           end.sends ? "sent" : "received", place));
      }
      place = end.step;
      transfers_.of_ends[end.index] = static_cast<uint32_t>(transfers_.transfers.size() - 1);
    }
  }

  void check_transfers() {
    std::vector<bool> takes_part(problem_.n_ranks);
    TransferKey last{UINT32_MAX, 0, 0};
    for (size_t index = 0; index < transfers_.transfers.size() && objection_.empty(); ++index) {
      const auto& [transfer, sender, receiver] = transfers_.transfers[index];
      const uint32_t expected = transfer.from == last.from && transfer.to == last.to ? last.number + 1 : 0;
      if (transfer.number != expected) {
        objection_ = fmt::format("{}: the number should be {}", transfer_text(transfer), expected);
        return;
      }
      last = transfer;
      if (sender == kNoStep || receiver == kNoStep) {
        objection_ = fmt::format("{} has no {}", transfer_text(transfer), sender == kNoStep ? "sender" : "receiver");
        return;
      }
      const Step& sent = schedule_.programs[transfer.from].steps[sender];
      const Step& received = schedule_.programs[transfer.to].steps[receiver];
      if (sent.bytes != received.bytes || sent.chunk_bytes != received.chunk_bytes) {
        objection_ =
            fmt::format("{}: {} bytes in chunks of {} are sent, {} in chunks of {} received", transfer_text(transfer),
                        sent.bytes, sent.chunk_bytes, received.bytes, received.chunk_bytes);
        return;
      }
      takes_part[transfer.from] = takes_part[transfer.to] = true;
    }
    const auto idle = std::ranges::find(takes_part, false);
    if (objection_.empty() && problem_.n_ranks >= 2 && idle != takes_part.end()) {
      objection_ = fmt::format("rank {} has no transfer", idle - takes_part.begin());
    }
  }

  /// Of a transfer, at a step.
  struct End {
    TransferKey transfer;
    bool sends = false;
    uint32_t step = 0;
    uint32_t index = 0;  ///< among all ends
  };

  const Schedule& schedule_;
  const Problem& problem_;
  const std::vector<std::vector<uint32_t>> neighbours_;
  const Limits& limits_;
  std::array<uint64_t, 3> sizes_{};  // of the buffers of the rank that is looked at
  std::vector<End> ends_;
  Transfers transfers_;
  std::string objection_;
};

}  // namespace

std::string transfer_text(const TransferKey& transfer) {
  return fmt::format("transfer {} from rank {} to rank {}", transfer.number, transfer.from, transfer.to);
}

std::string step_text(uint32_t rank, uint32_t step) { return fmt::format("rank {}, step {}", rank, step); }

const char* buffer_text(Buffer buffer) {
  return buffer == Buffer::input ? "input" : buffer == Buffer::output ? "output" : "scratch";
}

uint64_t buffer_bytes(const Schedule& schedule, const Problem& problem, uint32_t rank, Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return input_bytes(problem, rank);
    case Buffer::output:
      return output_bytes(problem, rank);
    case Buffer::scratch:
      return schedule.programs[rank].scratch_bytes;
  }
  return 0;
}

tl::expected<Transfers, std::string> check_structure(const Schedule& schedule, const Problem& problem,
                                                     const fabric::Graph& graph, const Limits& limits) {
  return StructureCheck(schedule, problem, graph, limits).run();
}

}  // namespace ringbolt::collective
