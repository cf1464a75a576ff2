// SPDX-License-Identifier: Apache-2.0
//
// Every public header after the macros of platform headers: windows.h, rpc.h, wingdi.h,
// sys/sysmacros.h. Compiling is the test.
#include <bits/stdc++.h>  // before the macros, because the standard library removes some of them
#include <dlfcn.h>

// Their values are what no correct use could compile with.
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

#include "all_headers.inc"
