import os
import torch
d=torch.device("cuda:0"); torch.zeros(1,device=d)
def a(msg): torch.cuda.synchronize(); print("%-40s %9.2f MiB"%(msg,torch.cuda.memory_allocated()/2**20),flush=True)
a("start")
for dt in (torch.float32,torch.bfloat16):
    x=torch.zeros(64,64,dtype=dt,device=d,requires_grad=True); a(f"{dt} x")
    y=x@x; a("mm fwd"); y.sum().backward(); a("mm bwd")
    y=torch.addmm(x[0],x,x); a("addmm fwd"); y.sum().backward(); a("addmm bwd")
    del x,y
    a("freed")
torch._C._cuda_clearCublasWorkspaces(); a("cleared")
x=torch.zeros(64,64,device=d,requires_grad=True); (x@x).sum().backward(); a("again")
l=torch.nn.Linear(2048,1000).cuda(); h=torch.randn(256,2048,device=d,requires_grad=True); a("linear"); l(h).sum().backward(); a("linear ran"); 
b=torch.nn.Conv2d(8,8,3).cuda(); b(torch.randn(2,8,9,9,device=d)).sum().backward(); a("conv")
import remat.torch.measuring as m
print(m.library_bytes(d)/2**20); a("after library_bytes")
