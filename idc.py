M=[dict(id='idc', file='wbattn/fast/core.c', old="    if (x < -87) x = -87;\n", new="    if (x < -87) x = -87.0;\n", pages=['29_core'])]
