#include "cluster/topology.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cluster/limits.h"

namespace ringbolt::cluster {
namespace {

/// Grows a cluster cable by cable.
class Wiring {
 public:
  explicit Wiring(uint32_t n_nodes) {
    for (uint32_t node = 0; node < n_nodes; ++node) {
      cluster_.nodes.push_back({"n" + std::to_string(node), {}});
    }
  }

  /// A cable between the next free ports of both nodes.
  void join(uint32_t a, uint32_t b) {
    const CableEnd end_a = new_port(a);
    plug(end_a, new_port(b));
  }
  /// A cable between ports that are there.
  void plug(CableEnd a, CableEnd b) { cluster_.cables.push_back({a, b}); }
  CableEnd new_port(uint32_t node) {
    std::vector<Port>& ports = cluster_.nodes[node].ports;
    const auto port = static_cast<uint32_t>(ports.size());
    ports.push_back({port_device(port)});
    return {node, port};
  }

  Cluster finish() { return std::move(cluster_); }

 private:
  Cluster cluster_;
};

// The second is used by torus alone.
using Size = std::pair<uint32_t, uint32_t>;

Cluster mesh(Size size) {
  Wiring wiring(size.first);
  for (uint32_t a = 0; a < size.first; ++a) {
    for (uint32_t b = a + 1; b < size.first; ++b) {
      wiring.join(a, b);
    }
  }
  return wiring.finish();
}

Cluster ring(Size size) {
  Wiring wiring(size.first);
  // Ports before cables: they are numbered by direction, not by the order of the cables.
  for (uint32_t node = 0; node < size.first; ++node) {
    wiring.new_port(node);  // to the next
    wiring.new_port(node);  // to the one before
  }
  for (uint32_t node = 0; node < size.first; ++node) {
    wiring.plug({node, 0}, {(node + 1) % size.first, 1});
  }
  return wiring.finish();
}

Cluster line(Size size) {
  Wiring wiring(size.first);
  for (uint32_t node = 1; node < size.first; ++node) {
    wiring.join(node - 1, node);
  }
  return wiring.finish();
}

Cluster star(Size size) {
  Wiring wiring(size.first);
  for (uint32_t node = 1; node < size.first; ++node) {
    wiring.join(0, node);
  }
  return wiring.finish();
}

Cluster torus(Size size) {
  const auto [rows, columns] = size;
  Wiring wiring(rows * columns);
  // The cable from the last back to the first of a side of 2 would double the one that is there.
  const auto has_next = [](uint32_t at, uint32_t side) { return side > 2 || at + 1 < side; };
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < columns; ++column) {
      const uint32_t node = row * columns + column;
      if (has_next(column, columns)) {
        wiring.join(node, row * columns + (column + 1) % columns);
      }
      if (has_next(row, rows)) {
        wiring.join(node, (row + 1) % rows * columns + column);
      }
    }
  }
  return wiring.finish();
}

Cluster hypercube(Size size) {
  const uint32_t n_nodes = 1U << size.first;
  Wiring wiring(n_nodes);
  for (uint32_t node = 0; node < n_nodes; ++node) {
    for (uint32_t bit = 0; bit < size.first; ++bit) {
      const uint32_t other = node ^ (1U << bit);
      // Each cable is met from both of its ends.
      if (node < other) {
        wiring.join(node, other);
      }
    }
  }
  return wiring.finish();
}

Cluster petersen(Size) {
  Wiring wiring(10);
  for (uint32_t node = 0; node < 5; ++node) {
    wiring.join(node, (node + 1) % 5);          // the outer pentagon
    wiring.join(node, node + 5);                // the spokes
    wiring.join(node + 5, (node + 2) % 5 + 5);  // the inner pentagram
  }
  return wiring.finish();
}

Cluster loop(Size) {
  Wiring wiring(1);
  const CableEnd end = wiring.new_port(0);
  wiring.plug(end, end);
  return wiring.finish();
}

enum class Shape { kAlone, kNumber, kProduct };

struct Family {
  std::string_view word;
  Shape shape;
  uint32_t least;  // of the number, or of each side
  uint32_t most;   // of the number, or of the product
  std::string_view usage;
  Cluster (*build)(Size);
};

constexpr std::array<Family, 8> kFamilies = {{
    {"mesh", Shape::kNumber, 2, kMaxNodes, "mesh:N", mesh},
    {"ring", Shape::kNumber, 2, kMaxNodes, "ring:N", ring},
    {"line", Shape::kNumber, 2, kMaxNodes, "line:N", line},
    {"star", Shape::kNumber, 2, kMaxNodes, "star:N", star},
    {"torus", Shape::kProduct, 2, kMaxNodes, "torus:AxB", torus},
    // 2^7 = 128 nodes is the largest below kMaxNodes.
    {"hypercube", Shape::kNumber, 1, 7, "hypercube:D", hypercube},
    {"petersen", Shape::kAlone, 0, 0, "petersen", petersen},
    {"loop", Shape::kAlone, 0, 0, "loop", loop},
}};

const Family* find_family(std::string_view word) {
  const auto* found =
      std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& family) { return family.word == word; });
  return found == kFamilies.end() ? nullptr : found;
}

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

Parsed<Size> parse_size(const Family& family, std::string_view text) {
  if (family.shape == Shape::kNumber) {
    const std::optional<uint32_t> value = number(text);
    if (!value || *value < family.least || *value > family.most) {
      return refuse(0, fmt::format("{} needs a whole number from {} to {}", family.usage, family.least, family.most));
    }
    return Size{*value, 0};
  }
  const size_t times = text.find('x');
  const std::optional<uint32_t> a = number(text.substr(0, times));
  const std::optional<uint32_t> b = number(times == std::string_view::npos ? "" : text.substr(times + 1));
  // In 64 bits: the product of two numbers of 32 may not wrap.
  if (!a || !b || *a < family.least || *b < family.least || uint64_t{*a} * *b > family.most) {
    return refuse(0, fmt::format("{} needs two sides of at least {}, as in torus:3x3, and {} nodes at most",
                                 family.usage, family.least, family.most));
  }
  return Size{*a, *b};
}

}  // namespace

Parsed<Cluster> parse_topology(std::string_view text) {
  const size_t colon = text.find(':');
  const Family* family = find_family(text.substr(0, colon));
  if (family == nullptr) {
    return refuse(0, fmt::format("unknown topology; known are {}", known_topologies()));
  }
  Size size;
  if (family->shape == Shape::kAlone) {
    if (colon != std::string_view::npos) {
      return refuse(0, fmt::format("{} takes no number", family->word));
    }
  } else {
    Parsed<Size> parsed = parse_size(*family, colon == std::string_view::npos ? "" : text.substr(colon + 1));
    if (!parsed) {
      return tl::unexpected<ParseError>(std::move(parsed.error()));
    }
    size = *parsed;
  }
  Cluster cluster = family->build(size);
  // "torus3x3", of the numbers and not of the text: leading zeros would make it longer than a name may be.
  cluster.name = family->word;
  if (family->shape != Shape::kAlone) {
    cluster.name += std::to_string(size.first);
  }
  if (family->shape == Shape::kProduct) {
    cluster.name += "x" + std::to_string(size.second);
  }
  return cluster;
}

bool names_topology(std::string_view text) { return find_family(text.substr(0, text.find(':'))) != nullptr; }

std::string known_topologies() {
  std::string all;
  for (const Family& family : kFamilies) {
    all += (all.empty() ? "" : ", ");
    all += family.usage;
  }
  return all;
}

}  // namespace ringbolt::cluster
