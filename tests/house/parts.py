"""Parts stay small, and tested: no class of the folders named here has more than 30 data members, none is spread over too many
files, and the unit tests of a folder have a share of the lines of what they test.

    parts.py ROOT | --self-test | --list ROOT"""

import pathlib
import re
import sys

MOST_MEMBERS = 30
MOST_FILES = 2
# Communicator: what its calls do, what comes from other ranks, and calls that have been prepared (short_calls.cpp), which
# are a file of their own by what they cost.
MOST_FILES_OF = {"Communicator": 3}
LEAST_TESTS = {"src/device": 0.6, "src/link": 0.6, "src/rsocket": 0.5, "src/stream": 0.5, "src/sanitizer": 0.5, "src/abi": 0.35, "src/group": 0.35, "src/mesh": 0.35}
FEW_MEMBERS = ("src/device", "src/rsocket", "src/stream", "src/sanitizer", "src/abi", "src/group", "src/mesh")
FEW_FILES = ("src/rsocket", "src/stream", "src/sanitizer", "src/group", "src/mesh")
# Neither data of an object nor a declaration of some.
_NO_MEMBER = re.compile(r"(public|protected|private)\s*:(?!:)|^(using|friend|static|typedef|template|enum|class|struct|union)\b")


def without_comments(text: str) -> str:
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', lambda found: "0" if found[0][0] in "\"'" else " ",
                  text, flags=re.DOTALL)


def matching(text: str, at: int, closes: str) -> int:
    """Behind the bracket that closes the one at `at`."""
    opens, depth = text[at], 0
    for place in range(at, len(text)):
        depth += (text[place] == opens) - (text[place] == closes)
        if depth == 0:
            return place + 1
    return len(text)


def without_arguments(head: str) -> str:
    """What stands before a brace, with empty parentheses, without attributes, template arguments and the names of operators."""
    head = re.sub(r"\boperator\s*(\(\s*\)|[^(]*)", "operator", head)
    head = head.replace("()", "(0)")
    while re.search(r"\([^()]*\)", head):
        head = re.sub(r"\([^()]*\)", "@", head)
    head = re.sub(r"\b(RINGBOLT_\w+|alignas|noexcept|explicit|decltype)\s*@", "", head)
    while re.search(r"<[^<>;]*>", head):
        head = re.sub(r"<[^<>;]*>", "", head)
    return head.replace("@", "()")


def members_of(body: str) -> int:
    """Of a class whose text between the braces this is; nested classes and functions are left out."""
    count, statement, at = 0, "", 0
    while at < len(body):
        one = body[at]
        if one == "{":
            end = matching(body, at, "}")
            head = re.sub(r"^((public|protected|private)\s*:\s*)+", "", " ".join(statement.split()))
            plain = without_arguments(head)
            is_function = "()" in plain and "=" not in plain
            if is_function and re.search(r"\(\)[^()]*:(?!:)", plain) and re.search(r"[\w>]$", head):
                statement, at = statement + "()", end  # `A() : x_{1} {}`: of the constructor's initializers
                continue
            is_type = re.match(r"(enum|class|struct|union)\b", head)
            at = end
            if is_function:
                statement = ""
            elif is_type:  # what it may declare at once counts: `struct {} name;`
                statement = "enum " if body[at:at + 40].lstrip().startswith(";") else "a type "
            else:
                statement += " "  # an initializer
            continue
        if one in "(":
            end = matching(body, at, ")")
            statement += body[at:end]
            at = end
            continue
        if one == ";":
            text = " ".join(statement.split())
            text = re.sub(r"^((public|protected|private)\s*:\s*)+", "", text)
            plain = re.sub(r"(RINGBOLT_\w+|alignas)\((?:[^()]|\([^()]*\))*\)", "", text)
            plain = re.sub(r"=.*", "", plain)
            while re.search(r"<[^<>]*>", plain):
                plain = re.sub(r"<[^<>]*>", "", plain)
            if plain and not _NO_MEMBER.match(plain) and re.match(r"(?!.*\boperator\b)[^(]*($|\(\*)", plain):
                count += 1 + plain.count(",")
            statement = ""
        else:
            statement += one
        at += 1
    return count


def classes_of(text: str):
    """(name, number of data members) of each class that the text defines, nested ones too."""
    text = without_comments(text)
    attributes = r"(?:\[\[\w+\]\]\s*|(?:RINGBOLT_\w+|alignas)(?:\([^()]*\))?\s+)*"
    for found in re.finditer(r"\b(?:class|struct)\s+" + attributes + r"(\w+)[^;{}()]*\{", text):
        if not re.search(r"\benum\s+$", text[:found.start()]):
            end = matching(text, found.end() - 1, "}")
            yield found[1], members_of(text[found.end():end - 1])


def defined_in(text: str) -> set:
    """Classes of which the text defines a function, outside of the class."""
    return set(re.findall(r"^(?!\s)(?:[^\n;={}()]*[\s&*:])?([A-Z]\w*)::~?\w+\(", without_comments(text), re.MULTILINE))


def lines_of(files) -> int:
    return sum(len(file.read_text().splitlines()) for file in files)


def check_members(root: pathlib.Path, folder: str, lists: bool) -> int:
    bad = 0
    for file in sorted((root / folder).glob("*.[hc]*")):
        for name, members in classes_of(file.read_text()):
            if lists and members > MOST_MEMBERS // 2:
                print(f"{members:3} {name} in {file.relative_to(root)}")
            if members > MOST_MEMBERS:
                bad = 1
                print(f"{file.relative_to(root)}: {name} has {members} data members, and {MOST_MEMBERS} are the most: find the part in it")
    return bad


def check_files(root: pathlib.Path, folder: str, lists: bool) -> int:
    bad, files_of = 0, {}
    for file in sorted((root / folder).glob("*.cpp")):
        if "_test" not in file.name:
            for name in defined_in(file.read_text()):
                files_of.setdefault(name, []).append(file.name)
    for name, files in files_of.items():
        if lists and len(files) > 1:
            print(f"{len(files):3} files for {name} of {folder}")
        most = MOST_FILES_OF.get(name, MOST_FILES)
        if len(files) > most:
            bad = 1
            print(f"{folder}: {name} is spread over {', '.join(files)}, and {most} are the most: find the part in it")
    return bad


def check_tests(root: pathlib.Path, folder: str, lists: bool) -> int:
    files = [file for ending in ("*.h", "*.cpp") for file in (root / folder).glob(ending)]
    tests = lines_of(file for file in files if "_test" in file.name)
    share = tests / (lines_of(files) - tests)
    if lists:
        print(f"{share:.2f} tests for a line of {folder}")
    if share < LEAST_TESTS[folder]:
        print(f"{folder}: its unit tests are {share:.2f} of its code, and {LEAST_TESTS[folder]} is the least")
    return int(share < LEAST_TESTS[folder])


def check(root: pathlib.Path, lists: bool) -> int:
    bad = [check_members(root, folder, lists) for folder in FEW_MEMBERS]
    bad += [check_files(root, folder, lists) for folder in FEW_FILES]
    bad += [check_tests(root, folder, lists) for folder in LEAST_TESTS]
    return int(any(bad))


def self_test() -> int:
    told = dict(classes_of("""
class A final : public B<C> {  // a; b;
 public:
  explicit A(int one, int two = 3) : one_(one) { two_ = {two}; }
  A(const A&) = delete;
  A& operator=(const A&) = delete;
  A(int one, uint64_t (*clock)() = nullptr) : one_(one) {}
  enum class Kind { one, two };
  struct Inner { int x; int y = 0; };
  static constexpr int kNone = 0;
  int get() const { return one_; }
  int put(std::map<int, int> all = {}) RINGBOLT_REQUIRES(lock);
  template <class Use> void each(Use use) { use(one_); }
  void begin(int first = 0) { one_ = first; }
  int n_;
  friend bool operator==(const A& a, const A& b) { return a.one_ == b.one_; }
  int m_;
  A(int a, int b) : one_(a != b), two_((a <= b)) {}
  int k_ = 0;
  explicit A(const B& b) : one_{b.one}, map_{{1, {2, 3}}} { one_ = 4; }
  int j_;
  int operator()(std::function<bool(int)> is = [](int one) { return one >= 3; }) const noexcept(false) { return is(1); }
  int i_;
  bool operator<=(const A& other) const { return one_ <= other.one_; }
  int h_ RINGBOLT_GUARDED_BY(part(lock));
 private:
  friend class D;
  int one_ = 1;
  std::map<int, std::pair<int, int>> map_ RINGBOLT_GUARDED_BY(lock){};
  void (*call_)(int) = nullptr;
  int a_, b_;
  std::array<int, 3> three_ = {1, 2, 3};
  const char* text_ = "a; int b;";
};
struct Empty {};
struct RINGBOLT_CAPABILITY("x") M { bool is_held = false; };
class RINGBOLT_SCOPED alignas(64) Lock final { M& m_; };
enum class Colour { red };
"""))
    expected = {"A": 13, "Inner": 2, "Empty": 0, "M": 1, "Lock": 1}
    if told != expected:
        print(f"counted {told}, there are {expected}")
    defined = defined_in("""
A::A(int one) : one_(one) {}
A::~A() = default;
void B::run() { C::call(D::make()); }
std::pair<int, E*> F::both(G::Kind kind) {
  return H::both(kind);
}
const std::string& I::name() const { return name_; }
// J::gone();
int free_function(K::Kind kind) { return 0; }
inline constexpr int kNone = L::none();
""")
    if defined != set("ABFI"):
        print(f"found {sorted(defined)}, there are A, B, F, I")
    return int(told != expected or defined != set("ABFI"))


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    lists = sys.argv[1] == "--list"
    return check(pathlib.Path(sys.argv[-1]), lists)


if __name__ == "__main__":
    sys.exit(main())
