// Written from wbattn.look.palette, whose notebook checks that both agree.
export const CLASSES = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#b58900", "#56B4E9", "#888888", "#7a5cc0", "#c0392b"];
export const OPERATORS = {"ECA": "#D55E00", "ECA, expansion": "#D55E00", "ECA, compression": "#b58900", "TSSA": "#0072B2", "ToST": "#0072B2", "TSSA, causal": "#56B4E9", "DMSA": "#009E73", "DMST": "#009E73", "MSSA": "#CC79A7", "CRATE": "#CC79A7", "MSSA (CRATE)": "#CC79A7", "XCA": "#7a5cc0", "XCiT": "#7a5cc0", "CBSA": "#E69F00", "CBT": "#E69F00", "ReduNet": "currentColor", "softmax": "#888888", "ViT": "#888888"};
export const GREY = '#888888';
