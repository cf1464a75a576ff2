// SPDX-License-Identifier: Apache-2.0
//
// The macros of platform headers: windows.h, rpc.h, wingdi.h, sys/sysmacros.h. Include it before
// the library's headers.
#ifndef FLETCHING_TESTS_PLATFORM_MACROS_H
#define FLETCHING_TESTS_PLATFORM_MACROS_H

#include <bits/stdc++.h>  // before the macros: the standard library undefines some of them
#include <dlfcn.h>

// The values break the compilation of any header that uses these names.
#define interface struct
#define near
#define far
#define small char
#define ERROR 0
#define IN
#define OUT
#define CONST const
#define VOID void
#define DELETE 1
#define TRUE 1
#define FALSE 0
#define OPTIONAL
#define major(device) macro_of_the_platform
#define minor(device) macro_of_the_platform
#define min(a, b) macro_of_the_platform
#define max(a, b) macro_of_the_platform

#endif  // FLETCHING_TESTS_PLATFORM_MACROS_H
