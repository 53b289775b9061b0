#!/bin/sh
# Installs into a temporary prefix, builds programs against what was installed, shared and static, by pkg-config and by CMake, as a user
# would, in C99, C11 and C++; runs one that was compiled against an older header; and takes everything away again.
# Usage: check.sh CMAKE BUILD_DIR SOURCE_DIR C_FLAGS
set -eu
cmake=$1 build=$2 source=$3 flags=$4
here=$source/tests/install
strict="-Wall -Wextra -Werror -pedantic"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }

echo "install"
quietly "$cmake" --install "$build" --prefix "$work/prefix"
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

echo "the header alone"
for define in "" -DREMAT_EXPERIMENTAL; do
    for standard in c99 c11; do
        # shellcheck disable=SC2086 # lists of words
        cc -std=$standard $strict $define -fsyntax-only -x c "$work/moved/include/remat.h"
    done
    # shellcheck disable=SC2086
    c++ -std=c++11 $strict $define -fsyntax-only -x c++ "$work/moved/include/remat.h"
done

echo "pkg-config"
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
cflags=$(pkg-config --cflags remat)
shared=$(pkg-config --libs remat)
static=$(pkg-config --static --libs remat | sed 's/-lremat/-l:libremat.a/') # the shared one lies beside it
compile() { # NAME SOURCE COMPILER...: with the shared library, and with the static one
    name=$1 file=$2
    shift 2
    # shellcheck disable=SC2086
    "$@" $flags $strict $cflags "$file" -x none $shared -o "$name"
    # shellcheck disable=SC2086
    "$@" $flags $strict $cflags "$file" -x none $static -o "$name.static"
}
compile client99 "$here/client.c" cc -std=c99
compile client11 "$here/client.c" cc -std=c11
compile clientxx "$here/client.c" c++ -std=c++11 -x c++
compile old_client "$here/old_client.c" cc -std=c99
for example in plan_file build_graph plan_chain; do
    compile $example "$source/examples/$example.c" cc -std=c11
done
# The programs on that page: the first block, and all others together. No function of the header may be missing.
awk '/^```c$/ { on = ++n == 1; next } /^```$/ { on = 0 } on' "$source/docs/c-api.md" >c_api.c
awk '/^```c$/ { on = ++n > 1; next } /^```$/ { on = 0 } on' "$source/docs/c-api.md" >c_api_all.c
for function in $(sed 's,/\*.*\*/,,' "$work/moved/include/remat.h" | grep -oE '\bremat_[a-z_]+\(' | sort -u | grep -v '^remat_sink($'); do
    grep -qF "$function" c_api.c c_api_all.c || { echo "docs/c-api.md does not show $function)"; exit 1; }
done
for page in c_api c_api_all; do
    compile $page $page.c cc -std=c99
    compile ${page}xx $page.c c++ -std=c++11 -x c++
done
shared="$shared -lm"
for trainer in train_mlp train_gpt; do
    compile $trainer "$source/examples/$trainer.c" cc -std=c11
done
for suffix in "" .static; do
    for client in client99 client11 clientxx old_client build_graph plan_chain c_api c_apixx c_api_all c_api_allxx; do
        LD_LIBRARY_PATH=$libdir quietly "./$client$suffix"
    done
    LD_LIBRARY_PATH=$libdir quietly "./train_mlp$suffix" --steps 2
    LD_LIBRARY_PATH=$libdir quietly "./train_gpt$suffix" --steps 2 --layers 1 --width 32 --length 32 --batch 2 --budget 100%
    LD_LIBRARY_PATH=$libdir quietly "./plan_file$suffix" "$graph" chen-sqrt 90%
done
readelf -d client11 | grep -q 'NEEDED.*libremat' || { echo "the shared client does not need the library"; exit 1; }
! readelf -d client11.static | grep -q 'NEEDED.*libremat' || { echo "the static client needs the shared library"; exit 1; }
if [ -z "$flags" ]; then # sanitizers cannot be linked statically
    # shellcheck disable=SC2046,SC2086 # and the linker warns that dlopen will want the shared libraries of today
    quietly cc -static -std=c11 $strict $cflags "$here/client.c" $(pkg-config --static --libs remat) -o client.alone
    quietly ./client.alone
fi

echo "find_package"
mkdir project
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C CXX)
find_package(remat 0.1 REQUIRED)
configure_file($here/client.c client.cpp COPYONLY)
foreach(kind remat remat_static)
    add_executable(client_\${kind} $here/client.c)
    add_executable(clientxx_\${kind} \${CMAKE_BINARY_DIR}/client.cpp)
    add_executable(old_client_\${kind} $here/old_client.c)
    foreach(client client clientxx old_client)
        target_link_libraries(\${client}_\${kind} PRIVATE remat::\${kind})
    endforeach()
endforeach()
END
quietly "$cmake" -S project -B out.d -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags"
quietly "$cmake" --build out.d
for kind in remat remat_static; do
    for client in client clientxx old_client; do
        quietly "out.d/${client}_$kind"
    done
done

echo "the program"
"$work/moved/bin/remat" --version

echo "uninstall"
unset MAKEFLAGS MAKELEVEL
there() { quietly make -C "$source" -o all "$1" BUILD="$build" PREFIX=/no/such/prefix DESTDIR="$work/stage"; } # what is built is installed
there install
prefix=$work/stage/no/such/prefix
[ -x "$prefix/bin/remat" ] && [ ! -e /no/such/prefix ] || { echo "DESTDIR or PREFIX is not heeded"; exit 1; }
touch "$prefix/bin/another" "$prefix/include/rematch.h"
there uninstall
left=$(cd "$work/stage" && find . ! -type d | sort | tr '\n' ' ')
[ "$left" = "./no/such/prefix/bin/another ./no/such/prefix/include/rematch.h " ] || { echo "left behind, or too much taken: $left"; exit 1; }
[ -z "$(find "$prefix" -name remat -type d)" ] || { echo "a folder of ours is left"; exit 1; }
there uninstall # nothing to do is no failure
echo "install: fine"
