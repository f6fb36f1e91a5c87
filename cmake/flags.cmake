set(RINGBOLT_WERROR_FLAG "")
if(RINGBOLT_WERROR)
  set(RINGBOLT_WERROR_FLAG -Werror)
endif()

# Flags of every target: the warnings that CONTRIBUTING.md asks for and the chosen instrumentation.
add_library(ringbolt_flags INTERFACE)
target_compile_options(ringbolt_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wsign-conversion>
  ${RINGBOLT_WERROR_FLAG}
  # Ranks choose schedules by floating-point sums: the same ones on every processor.
  -ffp-contract=off)
if(RINGBOLT_THREAD_SAFETY)
  # Who holds which lock, and in which order they are taken: src/base/thread_safety.h.
  target_compile_options(ringbolt_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety> $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety-beta>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The compiler collects its garbage each time that its heap has doubled, from 128 MiB on. A batch of sources ends at
  # 0.7 to 1.1 GiB: the first collections free little, and leaving them out saves a sixth of the time for a fifth more
  # memory. Unit: KiB.
  target_compile_options(ringbolt_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Requests and headers of some hundred bytes begin as zeros: "rep stos", the default, takes 30 cycles to get going.
  target_compile_options(ringbolt_flags INTERFACE -mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign)
endif()
target_include_directories(ringbolt_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(RINGBOLT_PORTABLE)
  # Its one file is asked for before libstdc++ is looked at, which comes last.
  add_library(ringbolt_older_glibc STATIC ${PROJECT_SOURCE_DIR}/cmake/older_glibc.c)
  target_link_libraries(ringbolt_flags INTERFACE ringbolt_older_glibc)
  target_link_options(ringbolt_flags INTERFACE LINKER:--undefined=arc4random)
  # The same bytes wherever the clone lies.
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${RINGBOLT_SYSROOT}=)
endif()
# libgcc_s.so.1 is on every system; what travels inside instead wants a C library of 2.35.
set(RINGBOLT_OWN_RUN_TIME -static-libstdc++)
if(NOT RINGBOLT_PORTABLE)
  list(APPEND RINGBOLT_OWN_RUN_TIME -static-libgcc)
endif()
if(RINGBOLT_SANITIZE)
  target_compile_options(ringbolt_flags INTERFACE -fsanitize=${RINGBOLT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ringbolt_flags INTERFACE -fsanitize=${RINGBOLT_SANITIZE})
  if(RINGBOLT_SANITIZE MATCHES undefined)
    # It asks the kernel through a pipe whether an object is there, and takes it for broken where descriptors have run
    # out, as some tests have it.
    target_compile_options(ringbolt_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
  endif()
  if(RINGBOLT_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(ringbolt_flags INTERFACE -Wno-tsan)  # it warns of every fence: it does not model them
  endif()
endif()
if(RINGBOLT_COVERAGE)
  target_compile_options(ringbolt_flags INTERFACE --coverage)
  target_link_options(ringbolt_flags INTERFACE --coverage)
endif()

# Test programs are compiled once and run for seconds: without optimization that takes less than half the time, and
# without line tables a fourteenth less; the preset dev has those. What they test is compiled as always. Sanitizers and
# fuzzers have flags of their own.
set(RINGBOLT_TEST_OPTIONS "")
if(NOT RINGBOLT_SANITIZE AND NOT RINGBOLT_FUZZ AND NOT RINGBOLT_COVERAGE)
  set(RINGBOLT_TEST_OPTIONS -O0 -g0)
endif()

# Sanitizers slow a program down several times: all time limits of a test grow with them, its own and those of ctest. A
# folder of tests asks for that once, at its beginning.
set(RINGBOLT_TEST_TIME_FACTOR 1)
if(RINGBOLT_SANITIZE MATCHES thread)
  set(RINGBOLT_TEST_TIME_FACTOR 5)
elseif(RINGBOLT_SANITIZE)
  set(RINGBOLT_TEST_TIME_FACTOR 3)
endif()

# What ctest reads when it starts, and every test inherits.
set(environment_of_tests "set(ENV{RINGBOLT_TEST_TIME_SCALE} ${RINGBOLT_TEST_TIME_FACTOR})\n")
if(RINGBOLT_SANITIZE MATCHES thread)
  # A program may end with its device open: the service thread runs until then, and exit() must not wait for it.
  string(APPEND environment_of_tests "set(ENV{TSAN_OPTIONS} \"\$ENV{TSAN_OPTIONS} report_thread_leaks=0 die_after_fork=0 "
    "suppressions=${PROJECT_SOURCE_DIR}/cmake/thread-sanitizer.supp\")\n")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/CTestCustom.cmake ${environment_of_tests})

function(ringbolt_scale_tests_of_this_folder)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    get_test_property(${test} TIMEOUT seconds)
    if(seconds)
      math(EXPR seconds "${seconds} * ${RINGBOLT_TEST_TIME_FACTOR}")
      set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds})
    endif()
  endforeach()
endfunction()
macro(ringbolt_scale_test_times)
  if(RINGBOLT_TEST_TIME_FACTOR GREATER 1)
    cmake_language(DEFER CALL ringbolt_scale_tests_of_this_folder)
  endif()
endmacro()
