from .baker import TextureBaker
