// Libraries and versions.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

/// The folder of a library, /lib and /usr/lib being one.
std::string folder_of(std::string_view path) {
  std::string folder(path.substr(0, path.rfind('/')));
  return folder.starts_with("/usr/") ? folder.substr(4) : folder;
}

/// The one that the loader takes: the list is in its order.
std::string_view first_library(const Host& host, std::string_view name) {
  for (const std::string_view line : lines_of(host.text("libraries"))) {
    if (line.substr(line.rfind('/') + 1).starts_with(name)) {
      return line;
    }
  }
  return "";
}

void mixed_libraries(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view verbs = first_library(host, "libibverbs.so.1");
    if (verbs.empty()) {
      return;
    }
    for (const char* name : {"librdmacm.so.1", "libmlx5.so.1"}) {
      const std::string_view other = first_library(host, name);
      if (other.empty()) {
        continue;
      }
      probe.looked();
      if (folder_of(verbs) != folder_of(other)) {
        probe.found(host, "libibverbs.so.1", fmt::format("programs load {} beside {}", verbs, other))
            .seen(host, "libraries", verbs)
            .seen(host, "libraries", other)
            .advise(fmt::format("take {} out of LD_LIBRARY_PATH or ld.so.conf, or put the others there, too",
                                verbs.substr(0, verbs.rfind('/'))));
        return;
      }
    }
  });
}

bool has_card_of(const Host& host, std::string_view driver) {
  return std::ranges::any_of(host.devices, [&](const Device& one) {
    const Netdev* netdev = host.netdev(one.netdev);
    return !one.pci.empty() && netdev != nullptr && netdev->driver == driver;
  });
}

void missing_libraries(Probe& probe) {
  probe.each_host([&](const Host& host) {
    if (host.recording->find(host.name, "libraries") == nullptr || !has_card_of(host, "mlx5_core")) {
      return;
    }
    probe.looked();
    if (first_library(host, "libibverbs.so.1").empty()) {
      probe.found(host, "libibverbs.so.1", "there is a card, and no verbs library")
          .seen(host, "libraries", host.text("libraries").empty() ? "none" : host.text("libraries"))
          .step(host, "apt install libibverbs1 ibverbs-providers librdmacm1",
                "apt remove libibverbs1 ibverbs-providers librdmacm1");
    }
  });
}

void missing_providers(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const Reading* providers = host.recording->find(host.name, "providers");
    if (providers == nullptr || !has_card_of(host, "mlx5_core") || contains(host.text("verbs library"), "/ringbolt/")) {
      return;
    }
    probe.looked();
    if (!contains(providers->text, "libmlx5")) {
      probe.found(host, "libmlx5", "the verbs library has no provider for this card")
          .seen(host, "providers", providers->text.empty() ? "none" : providers->text)
          .seen(host, "verbs library", host.text("verbs library"))
          .step(host, "apt install ibverbs-providers", "apt remove ibverbs-providers");
    }
  });
}

/// libmlx5-rdmav34.so wants IBVERBS_PRIVATE_34 of its library.
void foreign_providers(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view library = host.text("verbs library");
    const size_t at = library.find("IBVERBS_PRIVATE_");
    if (at == std::string_view::npos) {
      return;
    }
    const uint64_t version = number_of(library.substr(at + std::string_view("IBVERBS_PRIVATE_").size()));
    for (const std::string_view line : lines_of(host.text("providers"))) {
      const size_t mark = line.find("-rdmav");
      if (mark == std::string_view::npos) {
        continue;
      }
      probe.looked();
      if (number_of(line.substr(mark + 6)) != version) {
        probe
            .found(host, std::string(trimmed(line)),
                   fmt::format("the provider is for another verbs library than {}", version))
            .seen(host, "providers", line)
            .seen(host, "verbs library", library)
            .advise("install both of one version: apt install --reinstall libibverbs1 ibverbs-providers");
        return;
      }
    }
  });
}

/// A text that all machines should share.
void compare(Probe& probe, const char* source, const std::function<std::string_view(const Host&)>& part,
             const char* object, const char* advice) {
  const Host* first = nullptr;
  probe.each_host([&](const Host& host) {
    const std::string_view own = trimmed(part(host));
    if (own.empty()) {
      return;
    }
    if (first == nullptr) {
      first = &host;
      return;
    }
    probe.looked();
    const std::string_view other = trimmed(part(*first));
    if (own != other) {
      probe.found(host, object, fmt::format("{} here, {} on {}", own, other, first->name))
          .seen(host, source, own)
          .seen(*first, source, other)
          .advise(advice);
    }
  });
}

void differing_packages(Probe& probe) {
  compare(
      probe, "packages", [](const Host& host) { return line_with(host.text("packages"), "libibverbs1"); },
      "libibverbs1", "install the same release of the system, or of rdma-core, on all machines");
}

void differing_kernels(Probe& probe) {
  compare(
      probe, "uname -srm", [](const Host& host) { return host.text("uname -srm"); }, "kernel",
      "boot the same kernel on all machines");
}

void differing_ringbolts(Probe& probe) {
  compare(
      probe, "ringbolt --version", [](const Host& host) { return host.text("ringbolt --version"); }, "ringbolt",
      "install the same version on all machines: they refuse each other");
}

/// Lines of nccl.conf that are no remarks.
void left_nccl_conf(Probe& probe) {
  probe.each_host([&](const Host& host) {
    for (const auto& [path, text] : host.files) {
      if (!path.ends_with("nccl.conf")) {
        continue;
      }
      probe.looked();
      for (const std::string_view line : lines_of(text)) {
        if (contains(line, "NCCL_") && !trimmed(line).starts_with('#')) {
          probe.found(host, path, fmt::format("NCCL of every program obeys {}", trimmed(line)))
              .seen(host, path, line)
              .advise("put a # before the line, unless you know what it is for");
          break;
        }
      }
    }
    if (host.recording->find(host.name, "system") != nullptr) {
      probe.looked();
    }
  });
}

/// NCCL_NET_PLUGIN=ringbolt means libnccl-net-ringbolt.so.
void missing_plugins(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string* plugin = host.variable("NCCL_NET_PLUGIN");
    if (plugin == nullptr || *plugin == "none" || host.recording->find(host.name, "libraries") == nullptr) {
      return;
    }
    probe.looked();
    const bool is_path = plugin->find('/') != std::string::npos;
    const std::string name = plugin->ends_with(".so") ? *plugin : fmt::format("libnccl-net-{}.so", *plugin);
    if (!is_path && first_library(host, name).empty()) {
      probe.found(host, "NCCL_NET_PLUGIN", fmt::format("the loader finds no {}", name))
          .seen(host, "environment", "NCCL_NET_PLUGIN=" + *plugin)
          .advise("put its folder into LD_LIBRARY_PATH, or give the variable its path");
    }
  });
}

constexpr Check kSoftwareChecks[] = {
    {"library-missing", Severity::error, Platform::linux, "there is a card, and no verbs library",
     "programs don't start, or go over TCP without a word", "", missing_libraries},
    {"library-mixed", Severity::error, Platform::linux, "programs load verbs libraries of different installations",
     "their insides don't fit: crashes, or no device", "", mixed_libraries},
    {"provider-missing", Severity::error, Platform::linux, "the verbs library has no provider for a card",
     "ibv_devinfo finds no device where ibstat does", "", missing_providers},
    {"provider-foreign", Severity::error, Platform::linux, "a provider is for another version of the verbs library",
     "loading it fails with IBVERBS_PRIVATE_.. not found, and the device is missing", "", foreign_providers},
    {"ringbolt-differs", Severity::error, Platform::all, "machines have different versions of Ringbolt",
     "they refuse each other when they meet", "", differing_ringbolts},
    {"nccl-plugin-missing", Severity::error, Platform::linux, "NCCL_NET_PLUGIN names a plugin that is not found",
     "NCCL goes on with sockets and says so in one line of its log", "", missing_plugins},
    {"nccl-conf-left", Severity::warning, Platform::linux, "a file nccl.conf sets something",
     "settings of some earlier trial hold for every program, and no variable shows them", "system", left_nccl_conf},
    {"packages-differ", Severity::note, Platform::linux, "machines have different versions of rdma-core",
     "what works between two machines fails between others", "", differing_packages},
    {"kernels-differ", Severity::note, Platform::linux, "machines run different kernels",
     "names of devices and defaults of ports differ", "uname -srm", differing_kernels},
};

}  // namespace

std::span<const Check> software_checks() { return kSoftwareChecks; }

}  // namespace ringbolt::tools::doctor
