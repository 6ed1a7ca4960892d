"""Stands in for the native half of torchmcubes, which some programs import by itself."""

import torchmcubes


def mcubes_cpu(vol, threshold):
    return torchmcubes.marching_cubes(vol.cpu(), threshold)


def mcubes_cuda(vol, threshold):
    return torchmcubes.marching_cubes(vol, threshold)


def grid_interp_cpu(vol, points):
    return torchmcubes.grid_interp(vol.cpu(), points.cpu())


def grid_interp_cuda(vol, points):
    return torchmcubes.grid_interp(vol, points)
