"""footprint"""
