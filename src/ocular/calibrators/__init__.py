"""calibrators"""
