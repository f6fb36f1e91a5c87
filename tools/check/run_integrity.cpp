#include <cstring>

#include <fmt/format.h>

#include "base/crc.h"
#include "check/run.h"
#include "ranks/memory.h"

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

}  // namespace ringbolt::tools::check
