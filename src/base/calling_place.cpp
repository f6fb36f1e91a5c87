#include "base/calling_place.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

namespace ringbolt::base {
namespace {

// libdw of elfutils (elfutils/libdwfl.h), which is loaded when it is needed and installed: no program that explains
// nothing depends on it. Its types are opaque but for the table of callbacks.
struct DwflCallbacks {
  void* find_elf;
  void* find_debuginfo;
  void* section_address;
  char** debuginfo_path;
};

/// Of this process, or of files. Guarded by its caller: libdw is not thread-safe.
class Lines {
 public:
  // Whatever of libdw is missing leaves `session_` null, and every question is then answered with nothing:
  // explanations get along with addresses. The library and the session are never closed, since frames of it may be in
  // use as the process exits.
  explicit Lines(bool is_of_files = false) {
    void* const library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return;
    }
    const bool has_all =
        find(library, "dwfl_begin", begin_) && find(library, "dwfl_linux_proc_report", report_) &&
        find(library, "dwfl_report_end", report_end_) && find(library, "dwfl_addrmodule", module_of_) &&
        find(library, "dwfl_module_getsrc", line_of_) && find(library, "dwfl_lineinfo", info_of_) &&
        find(library, "dwfl_module_addrname", name_of_) && find(library, "dwfl_module_addrdie", unit_of_) &&
        find(library, "dwarf_getscopes", scopes_of_) && find(library, "dwarf_getscopes_die", scopes_around_) &&
        find(library, "dwarf_diename", die_name_) && find(library, "dwarf_tag", die_tag_) &&
        find(library, "dwarf_attr_integrate", attribute_of_) && find(library, "dwarf_formudata", number_of_) &&
        find(library, "dwarf_decl_file", file_of_);
    callbacks_ = {::dlsym(library, is_of_files ? "dwfl_build_id_find_elf" : "dwfl_linux_proc_find_elf"),
                  ::dlsym(library, "dwfl_standard_find_debuginfo"),
                  is_of_files ? ::dlsym(library, "dwfl_offline_section_address") : nullptr, &no_path_};
    if (!has_all || callbacks_.find_elf == nullptr || callbacks_.find_debuginfo == nullptr) {
      return;
    }
    session_ = begin_(&callbacks_);
    if (is_of_files) {
      const bool has_both =
          find(library, "dwfl_report_offline", add_file_) && find(library, "dwfl_module_info", module_info_);
      session_ = has_both ? session_ : nullptr;
      return;
    }
    // Modules that are loaded after this are not known: an address in a plug-in is told as library+offset.
    if (session_ != nullptr && (report_(session_, ::getpid()) != 0 || report_end_(session_, nullptr, nullptr) != 0)) {
      session_ = nullptr;
    }
  }

  /// "client.c:88 in connect_to()"; empty: nothing is known of that address. Found once: programs try the same again.
  // Valid as long as this object: nodes of an unordered_map do not move.
  const std::string& of(uintptr_t address) {
    const auto [known, is_new] = known_.try_emplace(address);
    if (is_new) {
      known->second = find_out(address);
    }
    return known->second;
  }

  /// The same of a file; it is looked at once, too.
  std::string of(const std::string& file, uint64_t offset) {
    if (session_ == nullptr) {
      return "";
    }
    const auto [known, is_new] = files_.try_emplace(file);
    if (is_new) {
      void* const module = add_file_(session_, file.c_str(), file.c_str(), -1);
      if (module != nullptr && report_end_(session_, nullptr, nullptr) == 0) {
        module_info_(module, nullptr, &known->second, nullptr, nullptr, nullptr, nullptr, nullptr);
      }
    }
    // libdw lays the files side by side in an address space of its own; `second` is where this one begins there.
    return known->second == 0 ? "" : of(known->second + offset);
  }

  /// Whether the address lies in a function of the verbs' own headers, which a program without optimization has.
  bool is_wrapper(uintptr_t address) {
    void* const module = session_ == nullptr ? nullptr : module_of_(session_, address);
    const char* const function = module == nullptr ? nullptr : name_of_(module, address);
    return function != nullptr && line_at(module, address).is_of_header() && is_of_verbs(function);
  }

 private:
  std::string find_out(uintptr_t address) {
    void* const module = session_ == nullptr ? nullptr : module_of_(session_, address);
    if (module == nullptr) {
      return "";
    }
    Line line = line_at(module, address);
    if (line.is_of_header()) {
      line = line_of_inlined(module, address).value_or(line);
    }
    const char* const name = name_of_(module, address);
    std::string_view function = name == nullptr ? "" : name;
    function = function.substr(0, function.find('.', 1));  // without what a compiler adds: "push.constprop.0"
    return line.file.empty() ? ""
                             : fmt::format("{}:{}{}", line.file, line.number,
                                           function.empty() ? "" : fmt::format(" in {}()", function));
  }

  // dwarf.h: DW_TAG_inlined_subroutine and DW_AT_call_line, as DWARF 4 and 5 number them alike (7.5.3, 7.5.4).
  static constexpr int kInlinedSubroutine = 0x1d;
  static constexpr unsigned kCallLine = 0x59;

  /// libdw.h; both are part of its interface.
  // Only their sizes matter, since libdw fills and reads them: four words each in its ABI.
  struct Die {
    void* address;
    void* unit;
    void* abbreviation;
    long padding;
  };
  struct Attribute {
    unsigned code;
    unsigned form;
    unsigned char* value;
    void* unit;
  };

  static bool is_of_verbs(std::string_view function) {
    function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
    return function.starts_with("ibv_") || function.starts_with("rdma_");
  }

  struct Line {
    std::string_view file;  ///< libdw's, without its folder; empty: not known
    int number = 0;

    bool is_of_header() const { return file == "verbs.h" || file == "rdma_verbs.h"; }
  };

  Line line_at(void* module, uintptr_t address) {
    Line line;
    void* const found = line_of_(module, address);
    const char* const path =
        found == nullptr ? nullptr : info_of_(found, nullptr, &line.number, nullptr, nullptr, nullptr);
    if (path != nullptr) {
      line.file = path;
      line.file.remove_prefix(line.file.rfind('/') + 1);
    }
    return line;
  }

  /// Where the outermost of the verbs' functions that were inlined there was called.
  std::optional<Line> line_of_inlined(void* module, uintptr_t address) {
    uint64_t bias = 0;
    Die* const unit = unit_of_ == nullptr ? nullptr : unit_of_(module, address, &bias);
    Die* defined =
        nullptr;  // the innermost scope, and those in which it is defined; wanted are those that it is called in
    Die* scopes = nullptr;
    const bool is_found = unit != nullptr && scopes_of_(unit, address - bias, &defined) > 0;
    const int n = is_found ? scopes_around_(&defined[0], &scopes) : 0;
    // dwarf_getscopes() allocates with malloc() and hands the array over.
    std::free(defined);
    std::optional<Line> line;
    for (int i = 0; i + 1 < n; ++i) {
      const char* const name = die_name_(&scopes[i]);
      Attribute attribute{};
      uint64_t number = 0;
      if (die_tag_(&scopes[i]) != kInlinedSubroutine || name == nullptr || !is_of_verbs(name) ||
          attribute_of_(&scopes[i], kCallLine, &attribute) == nullptr || number_of_(&attribute, &number) != 0) {
        continue;
      }
      int outer = i + 1;  // what it is called in: blocks in between have no file
      while (outer < n && file_of_(&scopes[outer]) == nullptr) {
        ++outer;
      }
      if (outer < n) {
        line = Line{};
        line->number = static_cast<int>(number);
        line->file = file_of_(&scopes[outer]);
        line->file.remove_prefix(line->file.rfind('/') + 1);
      }
    }
    std::free(scopes);
    return line;
  }

  template <class Function>
  static bool find(void* library, const char* name, Function*& into) {
    into = reinterpret_cast<Function*>(::dlsym(library, name));
    return into != nullptr;
  }

  void* (*begin_)(const DwflCallbacks*) = nullptr;
  int (*report_)(void*, pid_t) = nullptr;
  int (*report_end_)(void*, void*, void*) = nullptr;
  void* (*module_of_)(void*, uint64_t) = nullptr;
  void* (*line_of_)(void*, uint64_t) = nullptr;
  const char* (*info_of_)(void*, uint64_t*, int*, int*, uint64_t*, uint64_t*) = nullptr;
  const char* (*name_of_)(void*, uint64_t) = nullptr;
  Die* (*unit_of_)(void*, uint64_t, uint64_t*) = nullptr;
  int (*scopes_of_)(Die*, uint64_t, Die**) = nullptr;
  int (*scopes_around_)(Die*, Die**) = nullptr;
  const char* (*die_name_)(Die*) = nullptr;
  int (*die_tag_)(Die*) = nullptr;
  Attribute* (*attribute_of_)(Die*, unsigned, Attribute*) = nullptr;
  int (*number_of_)(Attribute*, uint64_t*) = nullptr;
  const char* (*file_of_)(Die*) = nullptr;
  void* (*add_file_)(void*, const char*, const char*, int) = nullptr;
  const char* (*module_info_)(void*, void***, uint64_t*, uint64_t*, uint64_t*, uint64_t*, const char**,
                              const char**) = nullptr;
  std::unordered_map<std::string, uint64_t> files_;   ///< where each begins, in libdw's account; 0: it can't be read
  std::unordered_map<uintptr_t, std::string> known_;  ///< no more than the program has places that call
  char* no_path_ = nullptr;
  DwflCallbacks callbacks_{};
  void* session_ = nullptr;
};

bool is_ours(std::string_view object, const void* base) {
  // Statically linked parts of ours lie in the program's or a wrapper's file, and are recognised by where this very
  // function is.
  static const void* const own_base = [] {
    Dl_info own{};
    return ::dladdr(reinterpret_cast<const void*>(&call_site), &own) != 0 ? own.dli_fbase : nullptr;
  }();
  const std::string_view name = object.substr(object.rfind('/') + 1);
  return base == own_base || name.starts_with("libibverbs.so") || name.starts_with("librdmacm.so") ||
         name.starts_with("libringbolt");
}

/// The end of the calling thread's stack: frames above this one may be read up to there.
// 0 where it can't be found out: call_site_of() then follows no frame. Cached per thread, since glibc reads
// /proc/self/maps for the main thread's, which takes longer than the rest together.
uintptr_t stack_end() {
  thread_local const uintptr_t end = [] {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) {
      return uintptr_t{0};
    }
    const bool is_known = ::pthread_attr_getstack(&attributes, &lowest, &size) == 0;
    ::pthread_attr_destroy(&attributes);
    return is_known ? reinterpret_cast<uintptr_t>(lowest) + size : 0;
  }();
  return end;
}

}  // namespace

CallSite call_site() {
  // A bound, on the stack: what our own libraries put between this and the program is far less.
  std::array<void*, 48> frames{};
  CallSite site;
  size_t found = 0;
  const int n = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  // The first frame is this function.
  for (int i = 1; i < n && found < site.returns.size(); ++i) {
    Dl_info info{};
    void* const frame = frames[static_cast<size_t>(i)];
    const bool is_known = ::dladdr(frame, &info) != 0 && info.dli_fname != nullptr;
    if (found != 0 || (is_known && !is_ours(info.dli_fname, info.dli_fbase))) {
      site.returns[found++] = reinterpret_cast<uintptr_t>(frame);
    }
  }
  return site;
}

namespace {

/// Whose code lies at an address.
enum class Owner : uintptr_t { unknown, program, library, library_with_frames };

Owner find_owner(uintptr_t address) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(address), &info) == 0 || info.dli_fname == nullptr) {
    return Owner::unknown;
  }
  const std::string_view path = info.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("librdmacm.so") && is_ours(path, info.dli_fbase)) {
    return Owner::library_with_frames;  // src/rdmacm/CMakeLists.txt
  }
  return is_ours(path, info.dli_fbase) || name.starts_with("libc.so") ? Owner::library : Owner::program;
}

/// A few nanoseconds, but for an address that is new. What was loaded in place of a library that was unloaded may be
/// taken for that one.
Owner owner_of(uintptr_t address) {
  constexpr size_t kKnown = 256;
  constexpr unsigned kBits = 2;  // of the owner, below the address, whose uppermost bits are 0 in programs
  static constinit std::array<std::atomic<uintptr_t>, kKnown> known{};
  std::atomic<uintptr_t>& entry = known[(address ^ address >> 8U) % kKnown];
  const uintptr_t found = entry.load(std::memory_order_relaxed);
  if (found >> kBits == address && found != 0) [[likely]] {
    return static_cast<Owner>(found & ((1U << kBits) - 1));
  }
  const Owner owner = find_owner(address);
  entry.store(address << kBits | static_cast<uintptr_t>(owner), std::memory_order_relaxed);
  return owner;
}

}  // namespace

CallSite call_site_of(const void* frame, const void* return_address) {
  constexpr int kMostFrames = 32;
  CallSite site;
  const auto first = reinterpret_cast<uintptr_t>(return_address);
  uintptr_t next = first;
  size_t found = 0;
  auto below = reinterpret_cast<uintptr_t>(frame);
  auto at = *static_cast<const uintptr_t*>(frame);  // what the caller had in its frame pointer
  uintptr_t end = 0;                                // of the stack, once it is asked for
  for (int i = 0; i < kMostFrames; ++i) {
    if (found == 0) {
      const Owner owner = owner_of(next);
      if (owner == Owner::library || (owner == Owner::unknown && next != first)) {
        break;  // which have no frame pointers, and lead anywhere
      }
      found += owner == Owner::library_with_frames ? 0U : 1U;
    } else {
      ++found;
    }
    if (found != 0) {
      site.returns[found - 1] = next;
    }
    // Both kinds of machine that we run on keep the caller's frame pointer there, and the return address behind it. A
    // frame that is not above the one before, not aligned, or not within the stack is no frame pointer but a register
    // that the compiler put to other use.
    if (found == site.returns.size() || at <= below || at % sizeof(uintptr_t) != 0) {
      break;
    }
    end = end == 0 ? stack_end() : end;
    if (end < 2 * sizeof(uintptr_t) || at > end - 2 * sizeof(uintptr_t)) {
      break;
    }
    next = reinterpret_cast<const uintptr_t*>(at)[1];
    below = at;
    at = *reinterpret_cast<const uintptr_t*>(at);
  }
  if (found == 0) {
    site.returns[0] = first;  // the library's name has to do
  }
  return site;
}

namespace {

/// Calls `use` with the lines of this process.
template <class Use>
auto with_own_lines(Use&& use) {
  static std::mutex mutex;
  static Lines* lines = nullptr;
  const std::lock_guard<std::mutex> guard(mutex);
  if (lines == nullptr) {
    // Not a static object: its destructor would run while other threads may still explain. Leaked on purpose.
    lines = new Lines;  // for as long as the process lives
  }
  return use(*lines);
}

}  // namespace

bool is_verbs_wrapper(uintptr_t returns_to) {
  return with_own_lines([&](Lines& lines) { return lines.is_wrapper(returns_to - 1); });
}

std::string place_of(const CallSite& site) {
  std::string of_ours = "somewhere";
  for (const uintptr_t next : site.returns) {
    Dl_info found{};
    const uintptr_t address = next - 1;  // of the call, not of where it returns to
    if (next == 0 || ::dladdr(reinterpret_cast<const void*>(address), &found) == 0 || found.dli_fname == nullptr) {
      break;
    }
    const std::string_view object = found.dli_fname;
    const std::string_view name = object.substr(object.rfind('/') + 1);
    if (is_ours(object, found.dli_fbase)) {
      of_ours = name;  // which has posted for the program, as rsockets do
      continue;
    }
    if (is_verbs_wrapper(next)) {
      continue;
    }
    const std::string line = with_own_lines([&](Lines& lines) { return lines.of(address); });
    return !line.empty() ? line : fmt::format("{}+{:#x}", name, address - reinterpret_cast<uintptr_t>(found.dli_fbase));
  }
  return of_ours;
}

std::string place_in(const std::string& file, uint64_t offset) {
  static std::mutex mutex;
  static Lines* lines = nullptr;
  const std::string name = file.substr(file.rfind('/') + 1);
  if (is_ours(file, nullptr)) {
    return name;  // which has called for the program
  }
  const std::lock_guard<std::mutex> guard(mutex);
  if (lines == nullptr) {
    lines = new Lines(true);  // for as long as the process lives
  }
  const std::string line = lines->of(file, offset);
  return line.empty() ? fmt::format("{}+{:#x}", name, offset) : line;
}

}  // namespace ringbolt::base
