from diff_gaussian_rasterization import GaussianRasterizationSettings, GaussianRasterizer


def render_splats(image):
    settings = GaussianRasterizationSettings(image_height=512, image_width=512)
    color, radii, depth, alpha = GaussianRasterizer(settings)()
    return color
