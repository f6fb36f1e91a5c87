#include "device/verb_faults.h"

#include <algorithm>
#include <cstdio>

#include "base/clock.h"

namespace ringbolt::device {

VerbFaults::VerbFaults(const Fabric& fabric) : fabric_(fabric) { read(); }

void VerbFaults::look() {
  const cluster::ControlPage& control = fabric_.control;
  if (control.is_open() && control.generation() != generation_.load(std::memory_order_relaxed)) {
    read();
  }
}

void VerbFaults::read() {
  const std::scoped_lock guard(lock_);
  if (fabric_.control.is_open()) {
    generation_.store(fabric_.control.generation());  // before the file: a change in between is seen the next time
  }
  std::string complaint;
  plan_ = fabric_.faults.read(complaint);
  if (!complaint.empty()) {
    std::fprintf(stderr, "ringbolt: no faults of the cluster: %s; ringbolt fault clear makes it whole\n",
                 complaint.c_str());
  }
  std::erase_if(plan_.rules, [](const fault::Rule& rule) { return fault::subject_of(rule.kind) == fault::Subject::frame; });
  for (auto& [key, stream] : streams_) {
    stream.set_rules(plan_, base::now_ns());
  }
  has_any_.store(!plan_.rules.empty());
}

fault::Verdict VerbFaults::judge(fault::Subject subject, const Port& port) {
  const std::scoped_lock guard(lock_);
  const uint64_t now = base::now_ns();
  const auto [found, is_new] =
      streams_.try_emplace({port.name, subject}, place_of(port), fault::Direction::send, subject);
  if (is_new) {
    found->second.set_rules(plan_, now);
  }
  constexpr size_t kNoBytes = 2;
  return found->second.judge(kNoBytes, now);
}

}  // namespace ringbolt::device
