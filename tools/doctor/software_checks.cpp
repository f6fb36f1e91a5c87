// Libraries and versions.
#include <algorithm>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

/// The folder of a library, /lib and /usr/lib being one.
std::string_view folder_of(std::string_view path) {
  const std::string_view folder = path.substr(0, path.rfind('/'));
  return folder.starts_with("/usr/") ? folder.substr(4) : folder;
}

/// The one that the loader takes: the list is in its order.
Value first_library(const Host& host, std::string_view name) {
  const auto lines = lines_of(host.text("libraries"));
  const auto found = std::ranges::find_if(
      lines, [&](std::string_view line) { return line.substr(line.rfind('/') + 1).starts_with(name); });
  return host.line_of("libraries", found == lines.end() ? "" : *found);
}

/// One that the kernel drives by mlx5_core, whose library is libmlx5.
bool has_mlx5_card(const Host& host) {
  return std::ranges::any_of(host.devices, [&](const Device& one) {
    const Netdev* port = host.netdev(one.netdev);
    return !one.pci.empty() && port != nullptr && port->driver == "mlx5_core";
  });
}

/// The line, or that there is none.
Value or_none(Value value) {
  value.text = value ? value.text : "none";
  return value;
}

/// libmlx5-rdmav34.so wants IBVERBS_PRIVATE_34 of its library.
void foreign_provider(Probe& at, const Host& host) {
  constexpr std::string_view kPrivate = "IBVERBS_PRIVATE_";
  constexpr std::string_view kMark = "-rdmav";
  const Value library = host.value("verbs library");
  const size_t begin = library.text.find(kPrivate);
  if (begin == std::string_view::npos) {
    return;
  }
  const uint64_t version = number_of(library.text.substr(begin + kPrivate.size()));
  for (const std::string_view line : lines_of(host.text("providers"))) {
    const size_t mark = line.find(kMark);
    const bool is_other = mark != std::string_view::npos && number_of(line.substr(mark + kMark.size())) != version;
    at.given(mark != std::string_view::npos)
        .judge(is_other && !at.has_found(host), {host, std::string(trimmed(line))},
               "the provider is for another verbs library than {}", version)
        .seen("providers", line)
        .seen(library)
        .advise("install both of one version: apt install --reinstall libibverbs1 ibverbs-providers");
  }
}

/// Lines of nccl.conf that are no remarks: the first of each file.
void left_nccl_conf(Probe& at, const Host& host) {
  at.looked(host.was_asked("system"));
  for (const auto& [path, text] : host.files) {
    const auto lines = lines_of(path.ends_with("nccl.conf") ? std::string_view(text) : "");
    const auto found = std::ranges::find_if(
        lines, [](std::string_view line) { return contains(line, "NCCL_") && !trimmed(line).starts_with('#'); });
    if (found != lines.end()) {
      at.judge(true, {host, path}, "NCCL of every program obeys {}", trimmed(*found))
          .seen(path, *found)
          .advise("put a # before the line, unless you know what it is for");
    }
  }
}

constexpr Check kSoftwareChecks[] = {
    {"library-missing", kError, kLinux, "there is a card, and no verbs library",
     "programs don't start, or go over TCP without a word", "",
     [](Probe& at, const Host& host) {
       at.given(host.was_asked("libraries") && has_mlx5_card(host))
           .judge(!first_library(host, "libibverbs.so.1"), {host, "libibverbs.so.1"},
                  "there is a card, and no verbs library")
           .seen(or_none(host.value("libraries")))
           .step("apt install {0}", "apt remove {0}", "libibverbs1 ibverbs-providers librdmacm1");
     }},
    {"library-mixed", kError, kLinux, "programs load verbs libraries of different installations",
     "their insides don't fit: crashes, or no device", "",
     [](Probe& at, const Host& host) {
       const Value verbs = first_library(host, "libibverbs.so.1");
       for (const char* name : {"librdmacm.so.1", "libmlx5.so.1"}) {
         const Value other = first_library(host, name);
         at.given(verbs, !!other)
             .judge(folder_of(verbs.text) != folder_of(other.text) && !at.has_found(host), {host, "libibverbs.so.1"},
                    "programs load {} beside {}", verbs.text, other.text)
             .seen(other)
             .advise("take {} out of LD_LIBRARY_PATH or ld.so.conf, or put the others there, too",
                     verbs.text.substr(0, verbs.text.rfind('/')));
       }
     }},
    {"provider-missing", kError, kLinux, "the verbs library has no provider for a card",
     "ibv_devinfo finds no device where ibstat does", "",
     [](Probe& at, const Host& host) {
       const Value library = host.value("verbs library");
       const Value providers = host.value("providers");
       at.given(host.was_asked("providers") && has_mlx5_card(host) && !contains(library.text, "/ringbolt/"))
           .judge(!contains(providers.text, "libmlx5"), {host, "libmlx5"},
                  "the verbs library has no provider for this card")
           .seen(or_none(providers))
           .seen(library)
           .step("apt install ibverbs-providers", "apt remove ibverbs-providers");
     }},
    {"provider-foreign", kError, kLinux, "a provider is for another version of the verbs library",
     "loading it fails with IBVERBS_PRIVATE_.. not found, and the device is missing", "", foreign_provider},
    {"ringbolt-differs", kError, kAll, "machines have different versions of Ringbolt",
     "they refuse each other when they meet", "",
     [](Probe& at) {
       judge_alike(
           at, "ringbolt", [](const Host& host) { return host.value("ringbolt --version"); },
           "install the same version on all machines: they refuse each other");
     }},
    {"nccl-plugin-missing", kError, kLinux, "NCCL_NET_PLUGIN names a plugin that is not found",
     "NCCL goes on with sockets and says so in one line of its log", "",
     [](Probe& at, const Host& host) {
       // "ringbolt" means libnccl-net-ringbolt.so; a path is taken as it is.
       const std::string_view plugin = host.variable("NCCL_NET_PLUGIN");
       const std::string name(plugin.ends_with(".so") ? plugin : fmt::format("libnccl-net-{}.so", plugin));
       at.given(!plugin.empty() && plugin != "none" && host.was_asked("libraries"))
           .judge(!contains(plugin, "/") && !first_library(host, name), {host, "NCCL_NET_PLUGIN"},
                  "the loader finds no {}", name)
           .variable("NCCL_NET_PLUGIN")
           .advise("put its folder into LD_LIBRARY_PATH, or give the variable its path");
     }},
    {"nccl-conf-left", kWarning, kLinux, "a file nccl.conf sets something",
     "settings of some earlier trial hold for every program, and no variable shows them", "system", left_nccl_conf},
    {"packages-differ", kNote, kLinux, "machines have different versions of rdma-core",
     "what works between two machines fails between others", "",
     [](Probe& at) {
       judge_alike(
           at, "libibverbs1", [](const Host& host) { return host.line("packages", "libibverbs1"); },
           "install the same release of the system, or of rdma-core, on all machines");
     }},
    {"kernels-differ", kNote, kLinux, "machines run different kernels", "names of devices and defaults of ports differ",
     "uname -srm",
     [](Probe& at) {
       judge_alike(
           at, "kernel", [](const Host& host) { return host.value("uname -srm"); },
           "boot the same kernel on all machines");
     }},
};

}  // namespace

std::span<const Check> software_checks() { return kSoftwareChecks; }

}  // namespace ringbolt::tools::doctor
