"""Bindings of NNRt's libraries: conversion of C's arguments and results."""
