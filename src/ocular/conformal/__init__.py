"""conformal"""
