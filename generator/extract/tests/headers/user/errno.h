#define ENOMEM 99
