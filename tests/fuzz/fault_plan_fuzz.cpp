// Any bytes as a plan of faults: refused with a reason, or a plan that survives being written and read again, and whose
// verdicts keep to the frame.

#include "base/assert.h"
#include "fault/look.h"
#include "fault/plan_text.h"
#include "fault/stream.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  const auto plan = fault::parse_plan(fuzz::as_text(data, size));
  if (!plan) {
    RINGBOLT_ASSERT(!plan.error().problem.empty());
    return 0;
  }
  const auto again = fault::parse_plan(fault::emit_plan(*plan));
  RINGBOLT_ASSERT(again && *again == *plan);
  constexpr size_t kPorts = 4;
  const fault::Place port{0, 0, "rdma_en2", 1};
  RINGBOLT_ASSERT(fault::device_names(*plan, std::vector(kPorts, port)).size() == kPorts);
  for (const size_t index : fault::gid_order(*plan, port, kPorts)) {
    RINGBOLT_ASSERT(index < kPorts);
  }
  for (unsigned subject = 0; subject < fault::kSubjects; ++subject) {
    fault::Stream others(port, fault::Direction::send, static_cast<fault::Subject>(subject), fault::Object::qp);
    others.set_rules(*plan, 0);
    for (uint64_t frame = 0; frame < 8; ++frame) {
      RINGBOLT_ASSERT(others.judge(2 + frame, frame * 1'000'000).flip_count <= fault::Rule::kMaxBits);
      static_cast<void>(others.holding(fault::Kind::flap, frame * 1'000'000));
    }
  }
  fault::Stream stream(port, fault::Direction::send);
  stream.set_rules(*plan, 0);
  for (uint64_t frame = 0; frame < 32; ++frame) {
    const size_t bytes = 2 + 131 * frame;
    const fault::Verdict verdict = stream.judge(bytes, frame * 100'000);
    RINGBOLT_ASSERT(!verdict.is_lost || (verdict.copies == 0 && verdict.hold_ns == 0 && !verdict.is_harmed()));
    RINGBOLT_ASSERT(verdict.kept_bytes == SIZE_MAX || (verdict.kept_bytes > 0 && verdict.kept_bytes < bytes));
    for (uint32_t i = 0; i < verdict.flip_count; ++i) {
      RINGBOLT_ASSERT(verdict.flips[i] < bytes * 8);
    }
  }
  return 0;
}
