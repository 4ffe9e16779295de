"""The dashboard: explores what the report states. (The app is not part of this version.)"""
