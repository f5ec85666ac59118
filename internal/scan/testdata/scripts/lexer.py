"""Words of a shell, for highlighting."""
KEYWORDS = (
    "foreach if in where while gc gci gcm gdr gi gp group "
    "history icm iex ihy ii ipal ipcsv ipmo ipsn irm ise iwmi iwr kill lp "
    "curl wget eval exec source alias bash sh zsh sudo chmod"
).split()
PATTERN = r"\b(curl|wget|iwr|irm)\b|\b(sh|bash|zsh)\b"
