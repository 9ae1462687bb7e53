"""ocular"""
