#include "port_counters.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "cluster/counter_page.h"

namespace ringbolt::counters {

Counts read_ports() {
  Counts counts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::getenv("RINGBOLT_RUNTIME_DIR"))) {
    if (entry.path().extension() != ".counters") {
      continue;
    }
    const auto sum = cluster::read_counters(entry.path());
    if (!sum) {
      throw std::runtime_error(entry.path().string() + ": errno " + std::to_string(sum.error().value));
    }
    for (const RingboltCounter& counter : cluster::all_counters()) {
      if (std::string(counter.folder) != "hw_counters" || std::string(counter.name) != "link_downed") {
        counts[counter.name] += ringbolt_counter_value(&counter, &*sum);
      }
    }
  }
  return counts;
}

Counts grown_since(const Counts& before) {
  Counts grown;
  for (const auto& [name, value] : read_ports()) {
    const auto was = before.find(name);
    const uint64_t from = was == before.end() ? 0 : was->second;
    EXPECT_GE(value, from) << name;
    if (value != from) {
      grown[name] = value - from;
    }
  }
  return grown;
}

std::string text_of(const Counts& counts) {
  std::string text;
  for (const auto& [name, value] : counts) {
    text += name + " " + std::to_string(value) + "\n";
  }
  return text;
}

}  // namespace ringbolt::counters
