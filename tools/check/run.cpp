#include "check/run.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/crc.h"
#include "collective/builder.h"
#include "collective/element.h"
#include "ranks/work.h"

namespace ringbolt::tools::check {
namespace {

uint32_t bits_of(float number) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

std::string number_text(float number) { return fmt::format("{} ({:08x})", number, bits_of(number)); }

Bad bad_of(const Step& step) {
  Bad bad;
  bad.operation = operation_of(step);
  bad.count = step.count;
  bad.pattern = text(step.pattern);
  bad.round = step.round;
  return bad;
}

Bad bad_of(const Step& step, const Wrong& wrong) {
  Bad bad = bad_of(step);
  if (wrong.is_guard) {
    bad.problem = "bytes beside the output were written";
    return bad;
  }
  bad.index = wrong.index;
  bad.want = number_text(wrong.want);
  bad.got = number_text(wrong.got);
  return bad;
}

Status make_call(Group& group, const Step& step, const std::vector<float>& input, ranks::GuardedMemory& output,
                 const Manner& manner) {
  const size_t input_bytes = input.size() * sizeof(float);
  output.resize(input_bytes * (step.is_gather ? group.size() : 1));
  output.fill_with_canary();
  const void* from = input.data();
  if (manner.is_in_place) {
    std::byte* const place = output.bytes().data() + (step.is_gather ? group.rank() * input_bytes : 0);
    std::memcpy(place, input.data(), input_bytes);
    from = place;
  }
  CallOptions options = manner.call;
  options.timeout_ms = manner.deadline_ms.value_or(deadline_ms(input_bytes, group.size()));
  std::byte* const to = output.bytes().data();
  return step.is_gather ? group.all_gather(from, to, step.count, Type::float32, options)
                        : group.all_reduce(from, to, step.count, Type::float32, Reduction::sum, options);
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string digits;
  for (size_t i = bytes.size(); i > 0; --i) {
    digits += fmt::format("{:02x}", static_cast<unsigned>(bytes[i - 1]));
  }
  return digits;
}

/// The case at hand: its memory and what must come of it.
class Trial {
 public:
  Trial(const MatrixCase& one, uint32_t rank)
      : work_(one.work),
        places_(ranks::places_of(one.work, rank)),
        input_(places_.is_shared ? 0 : places_.input_bytes),
        memory_(places_.memory_bytes()),
        data_(places_.input_bytes),
        expected_(places_.output_bytes) {
    ranks::write_input(work_, rank, data_);
    ranks::write_expected(work_, rank, expected_);
  }

  Status make_call(Group& group, const CallOptions& options) {
    memory_.fill_with_canary();
    const std::span<std::byte> input =
        places_.is_shared ? memory_.bytes().subspan(places_.input_at, places_.input_bytes) : input_.bytes();
    std::copy(data_.begin(), data_.end(), input.begin());
    return ranks::call(group, work_, input.data(), memory_.bytes().data() + places_.output_at, options);
  }

  std::span<const std::byte> output() const { return memory_.bytes().subspan(places_.output_at, places_.output_bytes); }

  /// What is wrong after the call.
  std::optional<Bad> find_wrong() const {
    Bad bad;
    const size_t element = ranks::bytes_of(work_.data.type);
    const size_t at = ranks::first_difference(output(), expected_, element);
    if (at * element < expected_.size()) {
      bad.index = at;
      bad.want = hexadecimal(std::span(expected_).subspan(at * element, element));
      bad.got = hexadecimal(output().subspan(at * element, element));
      return bad;
    }
    if (!memory_.is_guard_intact() || !input_.is_guard_intact()) {
      bad.problem = "bytes beside a buffer were written";
      return bad;
    }
    if (!places_.is_shared && !std::equal(data_.begin(), data_.end(), input_.bytes().begin())) {
      bad.problem = "the input was altered";
      return bad;
    }
    return std::nullopt;
  }

 private:
  const ranks::Work& work_;
  ranks::Places places_;
  ranks::GuardedMemory input_;
  ranks::GuardedMemory memory_;
  std::vector<std::byte> data_;
  std::vector<std::byte> expected_;
};

Bad described(Bad bad, const ranks::Work& work, const std::string& algorithm, uint32_t repeat) {
  bad.operation = ranks::text(work.collective);
  bad.count = work.count;
  bad.round = repeat;
  bad.pattern = fmt::format("({}{}{})", work.text(), work.data.is_exact ? ", exact, any order" : "",
                            algorithm.empty() ? "" : ", by " + algorithm);
  return bad;
}

/// All names that a call may be asked for; the empty one is the group's own choice.
std::vector<std::string> algorithms_of(const ranks::Work& work, const Manner& manner) {
  if (!ranks::has_algorithms(work.collective)) {
    return {""};
  }
  if (!manner.call.algorithm.empty()) {
    return {manner.call.algorithm};
  }
  std::vector<std::string> names{""};
  for (std::string& name : collective::schedule_names()) {
    names.push_back(std::move(name));
  }
  return names;
}

/// The group answers so before it has said anything to other ranks, on all of them alike: other cables, another shape.
bool does_not_fit(const Status& status) {
  return status.code == EINVAL && status.text.find("no algorithm") != std::string::npos;
}

/// False when a call failed: no other is tried.
bool try_all(Group& group, const MatrixCase& one, uint32_t repeats, const Manner& manner, const Finding& finding) {
  Trial trial(one, group.rank());
  Report& report = finding.report;
  CallOptions options = manner.call;
  options.is_reproducible = one.is_reproducible && manner.call.is_reproducible;
  const ranks::Places places = ranks::places_of(one.work, group.rank());
  options.timeout_ms =
      manner.deadline_ms.value_or(deadline_ms(std::max(places.input_bytes, places.output_bytes), group.size()));
  for (const std::string& name : algorithms_of(one.work, manner)) {
    options.algorithm = name;
    const bool is_first = name.empty() || name == manner.call.algorithm;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
      const Status status = trial.make_call(group, options);
      const base::LockGuard held(finding.last_words.mutex());
      if (!status.is_ok()) {
        if (does_not_fit(status)) {
          break;
        }
        Bad bad;
        bad.problem = status.text;
        report.add(described(std::move(bad), one.work, name, repeat));
        report.is_stopped = true;
        return false;
      }
      ++report.done;
      if (is_first) {  // the others must equal what is expected, and so this one
        report.checksums[repeat] = base::crc32c(report.checksums[repeat], trial.output());
      }
      if (auto wrong = trial.find_wrong()) {
        report.add(described(std::move(*wrong), one.work, name, repeat));
      }
    }
  }
  return true;
}

}  // namespace

void run_integrity(Group& group, const std::vector<Step>& steps, const Manner& manner, const Finding& finding) {
  Report& report = finding.report;
  ranks::GuardedMemory output(0);
  for (const Step& step : steps) {
    finding.progress.show(fmt::format("{} of {}, {} {}: {} of {} done, {} wrong", operation_of(step), step.count,
                                      text(step.pattern), step.round, report.done, steps.size(), report.bad));
    const std::vector<float> input = input_of(step, group.rank());
    const Status status = make_call(group, step, input, output, manner);
    const std::optional<Wrong> wrong = status.is_ok() ? find_wrong(step, group.size(), output) : std::nullopt;
    const base::LockGuard held(finding.last_words.mutex());
    if (!status.is_ok()) {
      Bad bad = bad_of(step);
      bad.problem = status.text;
      report.add(std::move(bad));
      report.is_stopped = true;
      return;
    }
    ++report.done;
    report.checksums.push_back(base::crc32c(0, output.bytes()));
    if (wrong) {
      report.add(bad_of(step, *wrong));
    }
  }
}

void run_matrix(Group& group, const std::vector<MatrixCase>& cases, uint32_t repeats, const Manner& manner,
                const Finding& finding) {
  finding.report.checksums.resize(repeats);
  size_t n_done = 0;
  for (const MatrixCase& one : cases) {
    finding.progress.show(fmt::format("{}: {} of {} cases, {} calls done, {} wrong", one.work.text(), n_done++,
                                      cases.size(), finding.report.done, finding.report.bad));
    // Asked to be fast, sums that round have no one result.
    const bool is_open = !manner.call.is_reproducible && one.is_reproducible && ranks::reduces(one.work.collective) &&
                         collective::depends_on_order(static_cast<collective::Type>(one.work.data.type),
                                                      static_cast<collective::Reduction>(one.work.data.reduction));
    if (!is_open && !try_all(group, one, repeats, manner, finding)) {
      break;
    }
  }
}

}  // namespace ringbolt::tools::check
