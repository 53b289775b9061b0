#!/bin/sh
# Installs into a temporary prefix and builds the examples against what was installed, by pkg-config and by CMake, as a user would.
# Usage: check.sh CMAKE BUILD_DIR SOURCE_DIR C_FLAGS
set -eu
cmake=$1 build=$2 source=$3 flags=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cd "$work/prefix"
for file in bin/remat include/remat.h share/man/man1/remat.1 share/bash-completion/completions/remat \
    share/zsh/site-functions/_remat share/fish/vendor_completions.d/remat.fish; do
    [ -s "$file" ] || { echo "not installed: $file"; exit 1; }
done
[ "$(find include -type f | wc -l)" = 1 ] || { echo "more than one header installed"; exit 1; }
libdir=$work/prefix/$(dirname "$(find . -name libremat.so)")
mv "$work/prefix" "$work/moved" # an installed tree may be moved
libdir=$work/moved/${libdir#"$work"/prefix/}
cd "$work"
graph=$source/tests/data/graphs/resnet18.json.gz

echo "pkg-config"
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
for example in plan_file build_graph plan_chain; do
    # shellcheck disable=SC2046,SC2086 # lists of words
    cc $flags -std=c11 -Wall -Wextra "$source/examples/$example.c" $(pkg-config --cflags --libs remat) -o "$example"
    # shellcheck disable=SC2046,SC2086
    cc $flags -std=c11 "$source/examples/$example.c" $(pkg-config --cflags remat) "$libdir/libremat.a" $(pkg-config --static --libs zlib) -lm -o "$example.static"
done
for suffix in "" .static; do
    LD_LIBRARY_PATH=$libdir "./plan_file$suffix" "$graph" chen-sqrt 90% | tee out | grep -q peak || { cat out; exit 1; }
    LD_LIBRARY_PATH=$libdir "./build_graph$suffix" | tee out | grep -q peak || { cat out; exit 1; }
done

echo "find_package"
mkdir project
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package(remat 0.1 REQUIRED)
add_executable(plan_file $source/examples/plan_file.c)
target_link_libraries(plan_file PRIVATE remat::remat)
add_executable(build_graph $source/examples/build_graph.c)
target_link_libraries(build_graph PRIVATE remat::remat_static)
END
{ "$cmake" -S project -B out.d -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_C_FLAGS="$flags" && "$cmake" --build out.d; } >log 2>&1 || { cat log; exit 1; }
out.d/plan_file "$graph" chen-sqrt 90% >/dev/null
out.d/build_graph

echo "the program"
"$work/moved/bin/remat" --version
echo "install: fine"
