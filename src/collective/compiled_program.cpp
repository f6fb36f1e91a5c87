#include "collective/compiled_program.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"

namespace ringbolt::collective {
namespace {

bool comes_before(const CompiledProgram::TransferEnd& a, const CompiledProgram::TransferEnd& b) {
  return std::tie(a.peer, a.transfer) < std::tie(b.peer, b.transfer);
}

/// Sorts ends and gives them their indices; a transfer has one step at each end.
void index_ends(std::vector<CompiledProgram::TransferEnd>& ends) {
  std::sort(ends.begin(), ends.end(), comes_before);
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i].index = static_cast<uint32_t>(i);
    RINGBOLT_ASSERT(i == 0 || comes_before(ends[i - 1], ends[i]));
  }
}

const Target* local_target(const Step& step) {
  const auto local = std::find_if(step.targets.begin(), step.targets.end(),
                                  [](const Target& target) { return target.kind == Target::Kind::local; });
  return local == step.targets.end() ? nullptr : &*local;
}

/// So many elements of each list, one after the other, as spans of it.
template <class T>
class Cutter {
 public:
  explicit Cutter(const std::vector<T>& list) : list_(list) {}
  std::span<const T> cut(size_t count) { return list_.subspan(std::exchange(at_, at_ + count), count); }

 private:
  std::span<const T> list_;
  size_t at_ = 0;
};

}  // namespace

CompiledProgram::CompiledProgram(const Program& program) : scratch_bytes_(program.scratch_bytes) {
  const auto n_steps = static_cast<uint32_t>(program.steps.size());
  std::vector<std::vector<uint32_t>> readers(n_steps);
  for (uint32_t i = 0; i < n_steps; ++i) {
    const collective::Step& step = program.steps[i];
    RINGBOLT_ASSERT(!step.sources.empty() && !step.targets.empty());
    RINGBOLT_ASSERT(step.bytes == 0 || step.chunk_bytes > 0);
    for (const collective::Source& source : step.sources) {
      if (source.kind == collective::Source::Kind::transfer) {
        incoming_.push_back({source.peer, source.transfer, i, 0});
      } else if (source.after != kNoStep) {
        RINGBOLT_ASSERT(source.after < n_steps);
        readers[source.after].push_back(i);
      }
    }
    for (const collective::Target& target : step.targets) {
      if (target.kind == collective::Target::Kind::transfer) {
        outgoing_.push_back({target.peer, target.transfer, i, 0});
        vias_.insert(vias_.end(), target.via.begin(), target.via.end());
      }
    }
  }
  index_ends(incoming_);
  index_ends(outgoing_);

  Cutter<uint32_t> vias(vias_);  // from here on they stay where they are
  for (uint32_t i = 0; i < n_steps; ++i) {
    const collective::Step& step = program.steps[i];
    for (const collective::Source& source : step.sources) {
      Source& flat = sources_.emplace_back();
      flat.is_transfer = source.kind == collective::Source::Kind::transfer;
      flat.transfer_index = flat.is_transfer ? find(incoming_, source.peer, source.transfer)->index : 0;
      flat.buffer = source.buffer;
      flat.after_all = source.after_all;
      flat.after = source.after;
      flat.offset = flat.written_from = source.offset;
      const collective::Target* written = source.after == kNoStep ? nullptr : local_target(program.steps[source.after]);
      if (written != nullptr && written->buffer == source.buffer) {
        flat.written_from = written->offset;
      }
    }
    for (const collective::Target& target : step.targets) {
      if (target.kind == collective::Target::Kind::transfer) {
        const uint32_t index = find(outgoing_, target.peer, target.transfer)->index;
        targets_.push_back({index, target.peer, target.transfer, vias.cut(target.via.size())});
      }
    }
    dependents_.insert(dependents_.end(), readers[i].begin(), readers[i].end());
  }

  // The lists grow no more: spans of them stay good.
  Cutter<Source> sources(sources_);
  Cutter<Target> targets(targets_);
  Cutter<uint32_t> dependents(dependents_);
  for (uint32_t i = 0; i < n_steps; ++i) {
    const collective::Step& step = program.steps[i];
    Step& flat = steps_.emplace_back();
    flat.bytes = step.bytes;
    flat.chunk_bytes = step.chunk_bytes;
    flat.n_chunks = step.bytes == 0 ? 1 : static_cast<uint32_t>((step.bytes + step.chunk_bytes - 1) / step.chunk_bytes);
    flat.finishes = step.finishes;
    if (const collective::Target* local = local_target(step)) {
      flat.has_local = true;
      flat.local_buffer = local->buffer;
      flat.local_offset = local->offset;
    }
    flat.sources = sources.cut(step.sources.size());
    flat.is_fed =
        std::any_of(flat.sources.begin(), flat.sources.end(), [](const Source& one) { return one.is_transfer; });
    if (!flat.is_fed) {
      unfed_.push_back(i);
    }
    flat.targets = targets.cut(step.targets.size() - (flat.has_local ? 1 : 0));
    flat.dependents = dependents.cut(readers[i].size());
  }
}

const CompiledProgram::TransferEnd* CompiledProgram::find_of_many(const std::vector<TransferEnd>& ends, uint32_t peer,
                                                                  uint32_t transfer) {
  const TransferEnd wanted{peer, transfer, 0, 0};
  const auto found = std::lower_bound(ends.begin(), ends.end(), wanted, comes_before);
  return found == ends.end() || comes_before(wanted, *found) ? nullptr : &*found;
}

}  // namespace ringbolt::collective
