package main

// vec is the kernels of package vec, a file for each instruction set and type of lanes.
func vec() *Package {
	p := newPackage("vec")
	p.endMacros()
	p.walkMacros()
	p.rowMacros()
	for _, is := range []isa{avx512, avx2} {
		g := p.file("int_" + is.name)
		g.data = tailMasks()
		for _, el := range []elem{i32, i64, u32, u64} {
			k := g.of(is, el)
			k.integerKernels()
			k.fillKernel()
			k.compareKernels()
			k.selectKernels()
		}
		g = p.file("misc_" + is.name)
		g.data = tailMasks() + philoxData()
		g.philoxKernel(is)
		g.transposeKernels(is, 4)
		g.transposeKernels(is, 8)
		if is == avx512 {
			g.convertKernels()
			g.boolKernels()
		}
		for _, el := range []elem{f32, f64} {
			g := p.file(el.name + "_" + is.name)
			g.data = tailMasks()
			k := g.of(is, el)
			k.binaryKernels(binaries)
			k.unaryKernels(unaries)
			k.fusedKernels()
			k.fillKernel()
			k.compareKernels()
			k.selectKernels()
			k.rowKernels()
			k.softmaxKernels()
		}
	}
	p.neonVec()
	return p
}
